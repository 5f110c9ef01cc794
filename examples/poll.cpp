// A server in a program whose own loop is poll(): poll SOCKET
// The program also reads its stdin: at the end of it, it stops.

#include <poll.h>
#include <unistd.h>

#include <array>
#include <iostream>

#include <duet/base/log_sink.h>
#include <duet/peer/server.h>

using namespace duet;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: poll SOCKET\n";
    return 1;
  }
  base::Log log(base::stderr_sink(false), base::Level::info);
  transport::Loop loop;
  peer::Server server(loop, log);
  server.methods().add("add", "Adds two numbers", {"a", "b"}, [](double a, double b) { return a + b; });
  server.methods().add("shout", "Tells everybody", [&](const rpc::Json& params) {
    server.broadcast("shouted", params);
    return server.client_count();
  });
  server.start(argv[1]);

  // The loop has one descriptor for all that it waits for: sockets, timers, posted work.
  std::array<pollfd, 2> ready{{{loop.descriptor(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
  while (poll(ready.data(), ready.size(), -1) >= 0) {
    if (ready[0].revents != 0) loop.turn(std::chrono::seconds(0));
    std::array<char, 256> line;
    if (ready[1].revents != 0 && read(STDIN_FILENO, line.data(), line.size()) <= 0) break;
  }
  server.stop();
}
