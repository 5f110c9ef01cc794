#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <tl/expected.hpp>

#include "app/mcp/client.h"
#include "app/mcp/resources.h"
#include "app/mcp/revision.h"
#include "app/mcp/task_watch.h"
#include "duet/peer/reply.h"
#include "duet/transport/loop.h"

namespace duet::app::mcp {

/// Who wants to be told when resources or tasks change: `resources/subscribe` of legacy clients, `subscriptions/listen`
/// of modern ones.
///
/// Changes within `together` become one message; the last state is always told. For the loop's thread only.
class Subscriptions {
 public:
  static constexpr std::size_t most_listens = 16;
  static constexpr std::size_t most_names = 256;
  static constexpr std::size_t longest_id = 1024;
  static constexpr std::chrono::milliseconds together{100};

  struct Calls {
    /// Which of these tasks, by id or handle, there are; later.
    std::function<void(const std::set<std::string>& names, std::function<void(const std::set<std::string>&)>)> find;
    /// The task of a handle in the words of the extension, later; nothing if it cannot be had.
    std::function<void(const std::string& handle, std::function<void(boost::json::object)>)> read_task;
  };
  Subscriptions(transport::Loop& loop, TaskWatch& tasks, Calls calls);
  Subscriptions(const Subscriptions&) = delete;
  Subscriptions& operator=(const Subscriptions&) = delete;

  /// An error: there are too many. Else `done` is called when changes will be told, now or later.
  /// There is one such client at most.
  std::optional<rpc::Error> subscribe(const std::shared_ptr<const Client>& client, const std::string& uri,
                                      const ResourceName& name, const std::function<void()>& done);
  void unsubscribe(const std::string& uri);

  /// What of the wish is honoured is acknowledged first, when its changes will be told. The reply is for our own end.
  std::optional<rpc::Error> listen(const std::shared_ptr<const Client>& client, const Envelope& envelope,
                                   const std::string& id, const std::shared_ptr<peer::Reply<>>& reply);
  /// Every listen gets its result, also one that comes later.
  void end();

 private:
  // One that listens; the legacy client is one without an id.
  struct Listener {
    std::shared_ptr<const Client> client = {};
    std::string id = {};                                 // as the client has spelt it
    bool is_told = false;                                // that it listens
    std::map<std::string, ResourceName> resources = {};  // by URI
    std::set<std::string> handles = {};
    std::shared_ptr<peer::Reply<>> reply = {};
    std::set<std::string> changed = {};  // URIs and handles that are to be told
  };

  void watch(std::function<void()> live = [] {});
  void check(std::uint64_t number);
  void acknowledge(Listener& listener);
  void finish(Listener& listener);
  void happened(std::string_view kind, std::string_view task);
  void tell();
  void tell_later();
  static bool starts_daemon(const Listener& listener);
  void notify(const Listener& listener, std::string_view method, const boost::json::object& params) const;

  transport::Loop& loop_;
  TaskWatch& tasks_;
  Calls calls_;
  std::map<std::uint64_t, Listener> listeners_;
  std::uint64_t last_ = 0;
  bool has_ended_ = false;
  transport::Loop::Timer telling_;
};

}  // namespace duet::app::mcp
