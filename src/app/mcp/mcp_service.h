#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "app/doors/mcp_source.h"
#include "app/mcp/door.h"
#include "duet/base/log.h"
#include "duet/peer/server.h"
#include "duet/transport/loop.h"

namespace duet::app::mcp {

/// `POST /mcp` of a daemon: a Door for each token that is used there, made by its first message and gone when it was
/// not used for a while.
///
/// The doors ask the daemon as any client does, over channels in memory and with the token's role, so that whatever a
/// role may not do is refused where it is always refused. For the loop's thread only; whoever has begun must have ended
/// before it goes.
class McpService final : public McpSource {
 public:
  static constexpr std::chrono::seconds idle_time{30};

  struct Context {
    transport::Loop& loop;
    base::Log& log;
    peer::Server& server;
    std::string root;  ///< of the project
  };
  explicit McpService(Context context) : context_(std::move(context)) {}
  McpService(const McpService&) = delete;
  McpService& operator=(const McpService&) = delete;
  virtual ~McpService() = default;

  std::optional<rpc::Error> fault_of_notification(const McpFields& fields, std::string_view message) const override;
  Place begin(McpCaller caller) override;
  void end(std::uint64_t number) override;
  void end_session(const peer::Admission& ended) override;
  void end_all(bool for_good) override;

  std::size_t door_count() const { return rooms_.size(); }

 private:
  struct Room {
    std::shared_ptr<const peer::Admission> admission;
    std::unique_ptr<Door> door;
    std::size_t callers = 0;
    bool is_leaving = false;  // takes nobody any more
    transport::Loop::Timer timer = {};
  };

  Room& room_for(const std::shared_ptr<const peer::Admission>& admission, bool is_late);
  DaemonLink::Channel connect(const std::shared_ptr<const peer::Admission>& admission);
  void leave(Room& room);
  void sweep_later();
  void sweep();

  Context context_;
  bool has_ended_ = false;
  std::list<Room> rooms_;
  std::map<std::uint64_t, Room*> callers_;
  transport::Loop::Deferred sweeping_;
  transport::Loop::Timer sweeping_again_;
};

}  // namespace duet::app::mcp
