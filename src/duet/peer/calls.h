#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "duet/base/clock.h"
#include "duet/base/log.h"
#include "duet/peer/outcome.h"
#include "duet/rpc/message.h"

namespace duet::peer {

/// The calls of one conversation that the peer has not answered yet. Every one gets exactly one outcome, unless it is
/// forgotten; what its callback throws is logged. It sends nothing.
class Calls {
 public:
  explicit Calls(base::Log& log) : log_(log) {}
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  /// Returns the id to send. The patience runs from the next time that start_clocks() is told.
  CallId add(base::Duration patience, CallCallback callback);
  /// False: it answers no call of ours. One that came too late is dropped.
  bool handle_response(const rpc::Message& response);
  void end(CallId id, Outcome outcome);
  void end_all(Outcome::Cause cause, const std::function<bool(CallId)>& was_sent);
  /// Its callback is never called. False: there is no such call.
  bool forget(CallId id);

  /// The call whose answer a damaged message was: by its id, or the only one there is; none if that is not certain.
  std::optional<CallId> owner_of(std::string_view raw_id) const;

  bool contains(CallId id) const { return calls_.contains(id); }
  bool empty() const { return calls_.empty(); }
  std::size_t size() const { return calls_.size(); }
  /// Bytes held, roughly.
  std::size_t bytes() const { return calls_.size() * call_bytes; }

  void start_clocks(base::TimePoint now);
  /// A time in the past while a clock has not been started.
  std::optional<base::TimePoint> deadline() const;
  /// The calls that are due, oldest first. Each is to be ended.
  std::vector<CallId> due(base::TimePoint now);

 private:
  static constexpr std::size_t call_bytes = 192;
  struct Call {
    CallCallback callback;
    base::Duration patience;
    base::TimePoint deadline;
  };

  void tell(const CallCallback& callback, Outcome outcome);

  base::Log& log_;
  CallId last_id_ = 0;
  std::unordered_map<CallId, Call> calls_;
  std::vector<CallId> without_clock_;
  base::TimePoint earliest_ = base::TimePoint::max();  // no call is due before
};

/// The id of a call of ours, as the peer wrote it; 0: it is none.
CallId read_call_id(std::string_view raw_id);

}  // namespace duet::peer
