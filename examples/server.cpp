// A JSON-RPC server on a Unix socket: server SOCKET
// Try it: printf '{"jsonrpc":"2.0","id":1,"method":"add","params":[2,3]}\n' | nc -N -U SOCKET

#include <csignal>
#include <cstdlib>
#include <iostream>

#include <duet/base/log_sink.h>
#include <duet/peer/server.h>
#include <duet/transport/sentinel.h>

using namespace duet;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: server SOCKET\n";
    return 1;
  }
  base::Log log(base::stderr_sink(false), base::Level::info);
  transport::Loop loop;
  // Signals stop the loop; if that takes more than two seconds, the process ends all the same.
  const transport::Sentinel sentinel(loop, {.signals = {SIGINT, SIGTERM},
                                            .on_signal = [&](int) { loop.stop(); },
                                            .patience = std::chrono::seconds(2),
                                            .on_overdue = [] { std::_Exit(0); }});
  peer::Server server(loop, log);

  // With a description the params are checked before the handler sees them, by name or by position.
  server.methods().add({.name = "add",
                        .summary = "Adds two numbers",
                        .params = {{.name = "a", .type = rpc::Type::number}, {.name = "b", .type = rpc::Type::number}},
                        .returns = "number",
                        .handler = [](const peer::Request& request) -> peer::Answer {
                          return boost::json::value(*request.params.number("a") + *request.params.number("b"));
                        },
                        .late_handler = {}});
  // Without one it takes whatever comes. Everybody who is connected hears what one of them shouts.
  server.register_method("shout", [&](const peer::Request& request) -> peer::Answer {
    server.broadcast("shouted", request.params.raw());
    return boost::json::value(static_cast<std::uint64_t>(server.client_count()));
  });
  server.start(argv[1]);
  loop.run();
}
