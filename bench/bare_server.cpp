// The least that can be built on the toolkit: `ping` answers {}, `echo` answers its params.
// bare_server stdio        LSP framing on stdin and stdout
// bare_server unix PATH    a message a line on a Unix socket
// bare_server websocket PATH    the frames of a WebSocket, without a handshake

#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "duet/base/log.h"
#include "duet/base/log_sink.h"
#include "duet/peer/connection.h"
#include "duet/peer/server.h"
#include "duet/transport/sentinel.h"
#include "duet/transport/stdio.h"

namespace {

using namespace duet;

void add_methods(peer::Methods& methods) {
  methods.add("ping", "Answers at once", [] { return rpc::Json::view("{}"); });
  methods.add("echo", "Answers its params", [](const rpc::Json& params) { return rpc::Json::view(params.text()); });
}

transport::Sentinel::Duties duties(transport::Loop& loop, int input) {
  return {.signals = {SIGTERM, SIGINT},
          .on_signal = [&loop](int) { loop.stop(); },
          .patience = std::chrono::seconds(2),
          .on_overdue = [] { std::_Exit(0); },
          .input = input};
}

int serve_stdio(base::Log& log) {
  transport::Loop loop;
  peer::Methods methods;
  add_methods(methods);
  auto channel =
      std::make_unique<transport::StdioChannel>(loop, base::duplicate(STDIN_FILENO), transport::take_stdout());
  const transport::Sentinel sentinel(loop, duties(loop, channel->input()));
  peer::ConnectionEvents events;
  events.on_closed = [&loop](peer::Ending) { loop.stop(); };
  peer::Connection connection(loop, std::move(channel), peer::Protocol::lsp_server(), methods, log, events);
  connection.open();
  loop.run();
  return 0;
}

int serve_unix(base::Log& log, const char* path, const peer::Protocol& protocol) {
  transport::Loop loop;
  const transport::Sentinel sentinel(loop, duties(loop, -1));
  peer::Server server(loop, log, {}, {}, protocol);
  add_methods(server.methods());
  server.start(path);
  loop.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);  // large messages go back to the system at once
  signal(SIGPIPE, SIG_IGN);
  base::Log log(base::stderr_sink(false));
  const std::string_view door = argc > 1 ? argv[1] : "";
  if (door == "stdio") return serve_stdio(log);
  if (door == "unix" && argc > 2) return serve_unix(log, argv[2], peer::Protocol::json_lines());
  if (door == "websocket" && argc > 2) return serve_unix(log, argv[2], peer::Protocol::websocket());
  return 2;
}
