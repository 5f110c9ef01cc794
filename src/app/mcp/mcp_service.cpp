#include "app/mcp/mcp_service.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "app/mcp/mirrored_fields.h"
#include "duet/transport/memory.h"

namespace duet::app::mcp {
namespace {

constexpr std::chrono::milliseconds between_sweeps{100};

// What a legacy message is of that does not say so.
std::string_view legacy_revision(const McpFields& fields) {
  const auto* const found = std::ranges::find(revisions, fields.version.value_or(std::string(batch_revision)));
  return found != revisions.end() ? *found : newest_legacy;
}

}  // namespace

std::optional<rpc::Error> McpService::fault_of_notification(const McpFields& fields, std::string_view message) const {
  return mcp::fault_of_notification(fields, message);
}

McpService::Place McpService::begin(McpCaller caller) {
  const bool is_late = caller.is_late || has_ended_;
  Room& room = room_for(caller.admission, is_late);
  ++room.callers;
  room.timer.cancel();
  if (is_late) leave(room);
  callers_.emplace(caller.number, &room);
  const std::string_view revision = legacy_revision(caller.fields);
  room.door->attach(caller.number,
                    {.notify = std::move(caller.notify), .revision = revision, .fields = std::move(caller.fields)});
  peer::Protocol protocol = peer::Protocol::mcp_server();
  protocol.framing = peer::Protocol::Framing::whole;
  protocol.batches = revision == batch_revision;
  protocol.read_at_once = peer::Protocol().read_at_once;  // there are others
  return {room.door->methods(), protocol};
}

McpService::Room& McpService::room_for(const std::shared_ptr<const peer::Admission>& admission, bool is_late) {
  const auto found = std::ranges::find_if(
      rooms_, [&](const Room& room) { return room.admission == admission && room.is_leaving == is_late; });
  if (found != rooms_.end()) return *found;
  Door::Options options{.scope = {.project = context_.root}, .tools = {.role = admission->role}};
  options.daemon.inside = {.root = context_.root, .connect = [this, admission] { return connect(admission); }};
  Room& room = rooms_.emplace_back();
  room.admission = admission;
  room.door = std::make_unique<Door>(context_.loop, context_.log, std::move(options));
  return room;
}

DaemonLink::Channel McpService::connect(const std::shared_ptr<const peer::Admission>& admission) {
  if (has_ended_) return nullptr;
  auto [near, far] = transport::memory_pair(context_.loop);
  context_.server.admit_inside(std::move(far), admission);
  return std::move(near);
}

void McpService::end(std::uint64_t number) {
  const auto found = callers_.find(number);
  Room& room = *found->second;
  callers_.erase(found);
  room.door->detach(number);
  if (--room.callers > 0) return;
  if (room.is_leaving) return sweep_later();
  room.timer = context_.loop.after(idle_time, [this, &room] { leave(room); });
}

void McpService::end_session(const peer::Admission& ended) {
  for (Room& room : rooms_) {
    if (room.admission.get() == &ended) leave(room);
  }
}

void McpService::end_all(bool for_good) {
  has_ended_ = has_ended_ || for_good;
  for (Room& room : rooms_) leave(room);
}

void McpService::leave(Room& room) {
  if (!std::exchange(room.is_leaving, true)) room.door->begin_end();
  sweep_later();
}

// Nobody is inside a door then.
void McpService::sweep_later() {
  if (!sweeping_) sweeping_ = context_.loop.deferred([this] { sweep(); });
}

// A call that nobody waits for any more may need a moment to end.
void McpService::sweep() {
  const auto is_left = [](const Room& room) { return room.is_leaving && room.callers == 0; };
  rooms_.remove_if([&](const Room& room) { return is_left(room) && room.door->is_idle(); });
  if (std::ranges::none_of(rooms_, is_left)) return;
  sweeping_again_ = context_.loop.after(between_sweeps, [this] { sweep(); });
}

}  // namespace duet::app::mcp
