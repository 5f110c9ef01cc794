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

  // Params are checked before the handler sees them, by name or by position.
  server.methods().add("add", "Adds two numbers", {"a", "b"}, [](double a, double b) { return a + b; });
  // One Json takes all of them as they come. Everybody who is connected hears what one of them shouts.
  server.methods().add("shout", "Tells everybody", [&](const rpc::Json& params) {
    server.broadcast("shouted", params);
    return server.client_count();
  });
  server.start(argv[1]);
  loop.run();
}
