#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "duet/api.h"
#include "duet/base/fd.h"

namespace duet::transport {

/// Nobody could be reached; the text says where it was tried, and what came of it.
class DUET_API Unreachable : public std::runtime_error {
 public:
  Unreachable(const std::string& text, bool timed_out) : std::runtime_error(text), timed_out_(timed_out) {}
  /// Nobody answered in time, neither yes nor no.
  bool timed_out() const { return timed_out_; }

 private:
  bool timed_out_;
};

/// A connection to a host, by its name or its address: a non-blocking socket.
///
/// All addresses of the host are tried, the next one as soon as the one before has failed or was silent for 250 ms; the
/// first that answers counts. `patience` is for all of it, the question for the name included. It blocks. A resolver
/// that hangs is left behind with a thread of its own. Throws Unreachable; std::system_error if we lack something.
DUET_API base::Fd connect_tcp(const std::string& host, std::uint16_t port, std::chrono::milliseconds patience);

}  // namespace duet::transport
