// A server whose answers come later, while it serves others: late_answers SOCKET

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>

#include <duet/duet.h>

// Runs on another thread. What it throws comes back, too.
int count_primes(int below) {
  if (below > 10'000'000) throw duet::Error(-32000, "That would take too long", below);
  int count = 0;
  for (int candidate = 2; candidate < below; ++candidate) {
    int divisor = 2;
    while (divisor * divisor <= candidate && candidate % divisor != 0) ++divisor;
    if (divisor * divisor > candidate) ++count;
  }
  return count;
}

int main(int argc, char** argv) {
  if (argc != 2) return (std::cerr << "usage: late_answers SOCKET\n", 1);
  duet::Log log(duet::base::stderr_sink(false), duet::base::Level::info);
  duet::Loop loop;
  const duet::transport::Sentinel sentinel(loop, {.signals = {SIGINT, SIGTERM},
                                                  .on_signal = [&](int) { loop.stop(); },
                                                  .patience = std::chrono::seconds(2),
                                                  .on_overdue = [] { std::_Exit(1); }});
  duet::Server server(loop, log);
  server.methods().add(
      "wake", "Answers after a while", {"milliseconds"}, [&](int wait, duet::Reply<std::string> reply) {
        if (wait < 0) throw duet::Error(-32000, "That time is over", wait);
        loop.after(std::chrono::milliseconds(wait), [reply = std::move(reply)]() mutable { reply.ok("good morning"); })
            .detach();
      });
  server.methods().add("primes", "Counts the primes below a number", {"below"}, [&](int below, duet::Reply<int> reply) {
    loop.run_elsewhere([below] { return count_primes(below); },
                       [reply = std::move(reply)](duet::base::Result<int> count) mutable {
                         try {
                           reply.ok(count.get());
                         } catch (const duet::Error& error) {
                           reply.fail(error);
                         }
                       });
  });
  server.start(argv[1]);
  loop.run();
}
