#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "duet/rpc/error.h"
#include "process/launch.h"

namespace duet::bridge {

/// Why a language server could not do what it was asked.
enum class Cause : std::uint8_t {
  not_found,                 ///< no such program
  exec_failed,               ///< the program cannot be run
  cwd_missing,               ///< its root folder is not there
  exited_before_initialize,  ///< it ended during the handshake
  handshake_timeout,         ///< it did not answer `initialize` in time
  protocol_noise,            ///< what it writes is not the protocol
  crashed,                   ///< it ended, or had to be ended, with work to do
  timeout,                   ///< one request was not answered in time
  stopped,                   ///< it was told to stop
  overloaded,                ///< too much waits for it already
  refused,                   ///< the request was in flight in several crashes in a row
  no_server,                 ///< none is set for this file, or none runs
};

/// `not-found` and so on: the word in `error.data.cause`.
std::string_view name_of(Cause cause);

/// What went wrong, in words for a person and with what the server itself said last.
struct Failure {
  Cause cause = Cause::crashed;
  std::string message = {};
  std::string server = {};                         ///< its name in the settings
  std::optional<process::ExitStatus> status = {};  ///< of a process that ended
  std::string error_output = {};                   ///< the end of its stderr
  std::string noise = {};                          ///< the start of what was no message on its stdout
};

/// `{cause, server, code?, signal?, stderr?, stdout?}`
boost::json::object describe(const Failure& failure);
/// What a client is answered.
rpc::Error to_error(const Failure& failure);

namespace code {
inline constexpr int unavailable = -32003;    ///< there is no such server to be had
inline constexpr int server_failed = -32004;  ///< there is one, and it failed
}  // namespace code

}  // namespace duet::bridge
