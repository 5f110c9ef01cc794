#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "process/cgroup.h"
#include "process/launch.h"

namespace duet::task {

/// How an agent tells that it may not work for a while. All that is given must hold.
struct UsageHold {
  std::vector<int> exit_codes = {};  ///< empty: any but 0
  /// A regular expression of RE2 that the end of its output has a match of; its group `until` is the time when the
  /// agent may work again. Empty: the output is not looked at.
  std::string output = {};
  std::chrono::milliseconds length = std::chrono::minutes(15);  ///< if nobody says until when
};

/// A program that does tasks, as the settings describe it. `{prompt}` in an argument stands for the prompt, unless the
/// prompt goes to its stdin.
struct Agent {
  std::vector<std::string> command;
  bool prompt_on_stdin = false;
  bool shell = false;  ///< it hands the prompt to a shell, and the settings say so: see task/shell_agent.h
  std::optional<std::size_t> max_running = {};  ///< of its tasks at once
  process::Environment env = {};                ///< what a submit says goes over it
  std::optional<UsageHold> hold = {};
  process::Limits limits = {};  ///< of each attempt of its tasks
  // For tasks that do not say otherwise.
  std::optional<std::chrono::milliseconds> time_limit = {};
  std::optional<std::uint32_t> retries = {};
  std::optional<std::int64_t> priority = {};
  std::string group = {};  ///< empty: `default`
};

/// Tasks that share a bound.
struct GroupSettings {
  std::optional<std::size_t> max_running = {};
  bool paused = false;  ///< until somebody says otherwise
};

/// Why what a project's file says of agents does not count, and what helps; for people.
struct Distrust {
  std::string why = "they are not trusted";
  std::string cure = "'duet-rpc trust' shows them and asks";
};

/// What the settings say about tasks.
struct TaskSettings {
  std::string default_agent = {};  ///< empty: `claude`, if it is on the PATH
  std::size_t max_running = 3;
  std::size_t queue_capacity = 10'000;
  std::size_t keep_days = 30;
  std::size_t keep_tasks = 10'000;
  std::uint64_t keep_output = std::uint64_t{2} << 30U;  ///< bytes, of all ended tasks together
  /// A file that the user has not trusted says what they are.
  std::set<std::string, std::less<>> untrusted_agents = {};
  std::string untrusted_default = {};  ///< its default_agent; empty: it has none
  std::set<std::string, std::less<>> untrusted_groups = {};
  bool had_trust = false;  ///< another content of that file was trusted: nobody takes the place of its agents
  Distrust distrust = {};
  std::map<std::string, Agent, std::less<>> agents = {};          ///< beside the built-in `claude` and `shell`
  std::map<std::string, GroupSettings, std::less<>> groups = {};  ///< beside `default`
};

}  // namespace duet::task
