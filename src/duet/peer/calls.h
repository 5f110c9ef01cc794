#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "duet/api.h"
#include "duet/base/clock.h"
#include "duet/base/log.h"
#include "duet/rpc/error.h"
#include "duet/rpc/message.h"
#include "duet/transport/loop.h"

namespace duet::peer {

/// How a call of ours ended.
struct Outcome {
  enum class Cause : std::uint8_t {
    answered,
    refused,       ///< the peer answered with an error
    timed_out,     ///< no answer in time; a later one is dropped
    disconnected,  ///< the peer went away before it answered
    overloaded,    ///< not sent: too much waits to be written already
  };
  Cause cause = Cause::disconnected;
  std::string result = {};               ///< raw JSON of Cause::answered
  std::optional<rpc::Error> error = {};  ///< of Cause::refused
};

/// `"timed out"` and the like.
DUET_API std::string_view name_of(Outcome::Cause cause);

/// The calls of one connection that the peer has not answered yet. Every one gets exactly one outcome; what its
/// callback throws is logged.
class Calls {
 public:
  using Callback = std::function<void(Outcome)>;

  Calls(transport::Loop& loop, base::Log& log) : loop_(loop), log_(log) {}
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls();

  /// Returns the id to send. A patience too long to be counted has no end.
  std::uint64_t add(base::Duration patience, Callback callback);
  /// False: no call of ours.
  bool settle(const rpc::Message& response);
  void fail_all(Outcome::Cause cause);
  void fail(std::uint64_t id, Outcome::Cause cause);
  std::size_t size() const { return calls_.size(); }

 private:
  struct Call {
    Callback callback;
    transport::Loop::Timer timer;
  };

  void finish(std::uint64_t id, Outcome outcome);
  void tell(const Callback& callback, Outcome outcome);

  transport::Loop& loop_;
  base::Log& log_;
  std::uint64_t last_id_ = 0;
  std::unordered_map<std::uint64_t, Call> calls_;
};

}  // namespace duet::peer
