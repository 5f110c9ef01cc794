#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace duet::task {

/// A program that does tasks, as the settings describe it. `{prompt}` in an argument stands for the prompt, unless the
/// prompt goes to its stdin.
struct Agent {
  std::vector<std::string> command;
  bool prompt_on_stdin = false;
};

/// What the settings say about tasks.
struct TaskSettings {
  std::string default_agent = {};  ///< empty: `claude`, if it is on the PATH
  std::size_t max_running = 3;
  std::size_t queue_capacity = 10'000;
  std::size_t keep_days = 30;
  std::size_t keep_tasks = 10'000;
  std::map<std::string, Agent, std::less<>> agents = {};  ///< beside the built-in `claude` and `shell`
};

}  // namespace duet::task
