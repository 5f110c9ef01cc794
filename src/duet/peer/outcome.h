#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "duet/api.h"
#include "duet/rpc/error.h"

namespace duet::peer {

/// A call of ours, by the id that goes over the wire. 0: none.
using CallId = std::uint64_t;

/// How a call of ours ended.
struct Outcome {
  enum class Cause : std::uint8_t {
    answered,
    refused,       ///< the peer answered with an error
    timed_out,     ///< no answer in time; a later one is dropped
    disconnected,  ///< the peer went away before it answered
    overloaded,    ///< not sent: too much waits to be written already
    unreadable,    ///< what came in place of the answer is no proper message
  };
  Cause cause = Cause::disconnected;
  CallId call = 0;
  std::string result = {};               ///< raw JSON of Cause::answered
  std::optional<rpc::Error> error = {};  ///< of Cause::refused
  bool was_sent = true;                  ///< false: the peer has seen nothing of it
};

using CallCallback = std::function<void(Outcome)>;

/// `"timed out"` and the like.
DUET_API std::string_view name_of(Outcome::Cause cause);

}  // namespace duet::peer
