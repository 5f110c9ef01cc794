#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "app/mcp/call.h"
#include "app/mcp/revision.h"
#include "duet/peer/reply.h"
#include "duet/transport/loop.h"

namespace duet::app::mcp {

/// The tools and resources that the protocol's own conformance suite asks every server for. Only in builds with
/// DUET_TEST_METHODS, which is never set for a release, and only if the environment has DUET_RPC_MCP_FIXTURES=1.
///
/// Those that take time are real tasks: a call of `slow_compute` becomes one of `task_run`, and the door answers it.
/// The door asks here before it looks at its own methods. For the loop's thread only.
class Fixtures {
 public:
  using ClientPointer = std::shared_ptr<const Client>;
  explicit Fixtures(Services& services);

  /// Answers a request that is about a fixture, or makes it one that the door can answer. False: the door is to answer.
  bool take(std::string_view method, const ClientPointer& client, Envelope& envelope, peer::Reply<>& reply);

 private:
  using SharedReply = std::shared_ptr<peer::Reply<>>;

  bool list(std::string_view method, const Envelope& envelope, peer::Reply<>& reply) const;
  bool call(const ClientPointer& client, Envelope& envelope, peer::Reply<>& reply);
  bool read(std::string_view method, const Envelope& envelope, peer::Reply<>& reply) const;
  bool get_task(const ClientPointer& client, Envelope& envelope, peer::Reply<>& reply);
  void tell_progress(const ClientPointer& client, const Envelope& envelope, const SharedReply& reply, int percent);

  Services& services_;
  bool are_wanted_ = false;
  std::list<transport::Loop::Timer> timers_;
};

}  // namespace duet::app::mcp
