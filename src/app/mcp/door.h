#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/mcp/call.h"
#include "app/mcp/client.h"
#include "app/mcp/desk.h"
#include "app/mcp/fixtures.h"
#include "app/mcp/revision.h"
#include "app/mcp/scope.h"
#include "app/mcp/subscriptions.h"
#include "app/mcp/task_watch.h"
#include "app/mcp/tool_table.h"
#include "duet/base/log.h"
#include "duet/peer/conversation.h"
#include "duet/peer/methods.h"
#include "duet/transport/loop.h"

namespace duet::app::mcp {

/// A server of the Model Context Protocol: answers what it knows itself, and asks the daemons of projects for the rest.
///
/// Nothing on disk is touched before the first call. It answers any number of conversations (Protocol::mcp_server()),
/// none of which may outlive it; their limits are those of one client together. For the loop's thread only, and to be
/// destroyed when it is idle.
class Door {
 public:
  static constexpr std::size_t most_calls = 1024;  ///< those that wait for tasks included

  struct Options {
    Scope::Options scope = {};
    ToolTable::Choice tools = {};
    std::optional<std::vector<std::string>> agents = {};  ///< none: as the settings say
    DaemonLink::Rules daemon = {};
  };
  Door(transport::Loop& loop, base::Log& log, Options options);
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  ~Door();

  /// For the conversation, with everything that can be asked.
  const peer::Methods& methods() const { return methods_; }
  /// Whoever speaks in the conversation whose peer has this number, before it says anything; none without this.
  void attach(std::uint64_t number, Client client);
  void detach(std::uint64_t number) { clients_.erase(number); }

  /// The client writes no more, or we are to end: who listens gets his result, waits for tasks stay without an answer,
  /// and what else runs may finish.
  void begin_end();
  /// Nothing is under way.
  bool is_idle() const { return services_.calls.empty(); }

 private:
  struct Request {
    std::shared_ptr<Client> client;
    peer::Conversation& conversation;
    Envelope envelope;
    std::string id;
    peer::Reply<> reply;
  };
  using Handler = void (Door::*)(Request);
  struct Entry;
  static const Entry entries[];

  void handle(const peer::Request& asked, peer::Reply<> reply);
  const Entry* find(std::string_view method, const Envelope& envelope, const Client& client) const;
  void run(Request& request, Call::Kind kind, const std::function<void(const std::shared_ptr<Call>&)>& answer,
           bool unlimited = false);

  void initialize(Request request);
  void ping(Request request);
  void discover(Request request);
  void list_tools(Request request);
  void call_tool(Request request);
  void list_resources(Request request);
  void list_templates(Request request);
  void read_resource(Request request);
  void subscribe(Request request);
  void unsubscribe(Request request);
  void listen(Request request);
  void get_task(Request request);
  void task_result(Request request);
  void update_task(Request request);
  void cancel_task(Request request);

  boost::json::object capabilities(const Envelope& envelope, const Client& client) const;
  bool refuse_cursor(Request& request);
  static rpc::Error unknown_resource(const Envelope& envelope, std::string_view uri);
  void tell_task(const std::string& handle, std::function<void(boost::json::object)> then);

  transport::Loop& loop_;
  Options options_;
  std::map<std::uint64_t, std::shared_ptr<Client>> clients_;
  ToolTable tools_;
  Scope scope_;
  Desk desk_;
  TaskWatch tasks_;
  Services services_;
  Subscriptions subscriptions_;
#ifdef DUET_TEST_METHODS
  Fixtures fixtures_{services_};
#endif
  peer::Methods methods_;
};

}  // namespace duet::app::mcp
