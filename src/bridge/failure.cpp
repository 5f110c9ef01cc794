#include "bridge/failure.h"

#include <algorithm>

#include "bridge/text.h"
#include "duet/rpc/utf8.h"

namespace duet::bridge {
namespace {

// In bytes as they are sent: what is not UTF-8 gets longer on its way.
constexpr std::size_t most_stderr = 8192;
constexpr std::size_t most_stdout = 300;

std::string start_of(const std::string& output) {
  return std::string(rpc::first_bytes(Text(output).str(), most_stdout));
}

std::string end_of(std::string_view output) {
  return std::string(rpc::last_bytes(Text(std::string(rpc::without_rest(output))).str(), most_stderr));
}

bool is_unavailable(Cause cause) {
  return cause == Cause::not_found || cause == Cause::exec_failed || cause == Cause::cwd_missing ||
         cause == Cause::no_server;
}

}  // namespace

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::not_found:
      return "not-found";
    case Cause::exec_failed:
      return "exec-failed";
    case Cause::cwd_missing:
      return "cwd-missing";
    case Cause::exited_before_initialize:
      return "exited-before-initialize";
    case Cause::handshake_timeout:
      return "handshake-timeout";
    case Cause::protocol_noise:
      return "protocol-noise";
    case Cause::crashed:
      return "crashed";
    case Cause::timeout:
      return "timeout";
    case Cause::stopped:
      return "stopped";
    case Cause::overloaded:
      return "overloaded";
    case Cause::refused:
      return "refused";
    case Cause::no_server:
      return "no-server";
  }
  return "crashed";
}

boost::json::object describe(const Failure& failure) {
  boost::json::object out{{"cause", name_of(failure.cause)}};
  if (!failure.server.empty()) out["server"] = failure.server;
  if (failure.status && failure.status->signal != 0) {
    out["signal"] = process::signal_name(failure.status->signal);
  } else if (failure.status && failure.status->is_known) {
    out["code"] = failure.status->code;
  }
  if (!failure.error_output.empty()) out["stderr"] = end_of(failure.error_output);
  if (!failure.noise.empty()) out["stdout"] = start_of(failure.noise);
  return out;
}

rpc::Error to_error(const Failure& failure) {
  const int code = is_unavailable(failure.cause) ? code::unavailable : code::server_failed;
  return {code, failure.message, describe(failure)};
}

}  // namespace duet::bridge
