#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "duet/transport/loop.h"

namespace duet::automation {

/// A program that a rule runs, and what it reads.
struct Program {
  std::vector<std::string> command = {};  ///< started as it is, without a shell
  std::chrono::milliseconds timeout{30'000};
  std::string input = {};  ///< on its stdin
  unsigned depth = 1;      ///< how many tasks and programs of rules led to it, one through the other, itself included
};

/// Runs the programs of rules: a few at once, the others wait, and one that is too many is refused. A program that
/// takes too long is told to end, and killed 2 s later, with all that it has started: it has ended when nothing of that
/// is left, as far as it can be found (task::find_leftovers), or 3 s after that, for not all can be killed. What runs
/// when this goes is killed in the same way. Its stdout goes nowhere; the end of its stderr is part of the failure. For
/// the loop's thread.
class Programs {
 public:
  static constexpr std::size_t most_running = 4;
  static constexpr std::size_t most_waiting = 100;
  /// Called once: empty if it has ended with 0, else what went wrong.
  using Ended = std::function<void(const std::string& failure)>;

  /// They start in the folder that is open as `folder`. `hides_store`: what leads to a shared queue is taken out of
  /// their environment.
  Programs(transport::Loop& loop, int folder, bool hides_store = false);
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;
  ~Programs();

  /// `started` is called when it has a place, if it ever has.
  void run(Program program, std::function<void()> started, Ended ended);
  /// Nothing is started any more; what waits is forgotten, what runs is killed.
  void close();

 private:
  class Running;
  struct Waiting {
    Program program;
    std::function<void()> started;
    Ended ended;
  };
  void start(const Waiting& next);
  void has_ended(const Running& running, const std::string& failure);

  transport::Loop& loop_;
  int folder_;
  bool hides_store_;
  std::list<Running> running_;
  std::deque<Waiting> waiting_;
  transport::Loop::Deferred next_;
};

}  // namespace duet::automation
