#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "app/client/daemon_client.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "duet/framing/frame.h"
#include "duet/rpc/json_scan.h"

namespace duet::app {
namespace {

// The daemon would say the same, but not in words for a command line.
void check_params(std::string_view params) {
  const rpc::Envelope::Shape shape = rpc::scan_envelope(params).shape;
  if (shape == rpc::Envelope::Shape::invalid) {
    throw Failure("PARAMS is not JSON: it is an object or an array, such as '{\"taskId\":\"task-1\"}'");
  }
  const std::string_view text = params.substr(params.find_first_not_of(" \t\r\n"));
  if (shape == rpc::Envelope::Shape::scalar && !text.starts_with("null")) {
    throw Failure("PARAMS is neither an object nor an array");
  }
}

}  // namespace

std::string read_input() {
  std::string text;
  std::array<char, 65536> room;
  for (;;) {
    const ssize_t count = read(STDIN_FILENO, room.data(), room.size());
    if (count < 0 && (errno == EINTR || (errno == EAGAIN && base::await_ready(STDIN_FILENO, POLLIN)))) continue;
    if (count < 0) throw std::system_error(errno, std::generic_category(), "stdin");
    if (count == 0) return text;
    text.append(room.data(), static_cast<std::size_t>(count));
    if (text.size() > framing::max_body) throw Failure("stdin has too much; a message may have 10 MiB");
  }
}

std::string params_argument(const std::string& given) {
  std::string params = given == "-" ? read_input() : given;
  if (params.find_first_not_of(" \t\r\n") == std::string::npos) return {};
  check_params(params);
  return params;
}

int run_call(const CommandLine& line) {
  const std::string params = line.arguments.size() > 1 ? params_argument(line.arguments[1]) : std::string();
  DaemonClient daemon(line);
  return print_text(daemon.call_raw(line.arguments.front(), params) + '\n');
}

}  // namespace duet::app
