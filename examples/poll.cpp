// A server in a program whose own loop is poll(): poll SOCKET
// What the program reads from its stdin it tells every client. At the end of stdin it ends.

#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <iostream>
#include <string_view>

#include <duet/duet.h>

int main(int argc, char** argv) {
  if (argc != 2) return (std::cerr << "usage: poll SOCKET\n", 1);
  duet::Log log(duet::base::stderr_sink(false));
  duet::Loop loop;
  duet::Server server(loop, log);
  server.methods().add("listeners", "How many clients there are", [&] { return server.client_count(); });
  server.start(argv[1]);

  // One descriptor stands for all that the loop waits for: sockets, timers, posted work.
  std::array<pollfd, 2> ready{{{loop.descriptor(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
  while (poll(ready.data(), ready.size(), -1) >= 0) {
    if (ready[0].revents != 0) loop.turn(std::chrono::seconds(0));
    if (ready[1].revents == 0) continue;
    std::array<char, 256> text;
    const ssize_t count = read(STDIN_FILENO, text.data(), text.size());
    if (count <= 0) break;
    server.broadcast("said", {{"text", std::string_view(text.data(), count)}});
  }
  server.stop();
}
