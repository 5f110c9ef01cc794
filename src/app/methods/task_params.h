#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/describe/class.hpp>

#include "duet/base/clock.h"
#include "duet/rpc/types.h"
#include "task/store_tables.h"
#include "task/task.h"

namespace duet::app {

/// The params of `task.submit`.
struct Submit {
  std::string prompt;
  std::optional<std::string> agent;
  std::optional<std::int64_t> priority;
  std::optional<std::string> key;
  std::optional<std::string> cwd;
  std::optional<std::map<std::string, std::string, std::less<>>> env;
  std::optional<double> timeoutSeconds;
  std::optional<std::int64_t> retries;
  std::optional<std::vector<std::string>> after;
  std::optional<std::string> group;
  std::optional<double> delaySeconds;
  std::optional<std::string> notBefore;
  std::optional<std::map<std::string, std::string, std::less<>>> labels;
  std::optional<std::int64_t> memory;
  std::optional<std::int64_t> processes;
  std::optional<double> cpu;
  bool handle = false;
  std::optional<task::OnLost> onLost;
  std::optional<std::vector<std::string>> needs;
  bool here = false;
};
BOOST_DESCRIBE_STRUCT(Submit, (),
                      (prompt, agent, priority, key, cwd, env, timeoutSeconds, retries, after, group, delaySeconds,
                       notBefore, labels, memory, processes, cpu, handle, onLost, needs, here))

/// How `task.output` gives bytes.
enum class Encoding : std::uint8_t { utf_8, base64 };

/// Which of a task's streams `task.output` reads.
enum class Streams : std::uint8_t { both, out, err };

// What types cannot say about params. Each throws rpc::Error if what was given cannot be meant.

task::Submission submission_of(Submit submit);
/// A text for an agent, which has to say something: one of blanks and line ends only is refused.
std::string prompt_of(std::string_view name, std::string text);
/// A task nobody has heard of is unknown, however it is spelt.
task::TaskId task_id_of(std::string_view text);
/// A whole number from `least` on; more than `most` means `most`.
std::uint64_t count_of(std::string_view name, std::int64_t given, std::uint64_t least, std::uint64_t most);
/// A time of ISO 8601, with its zone.
base::UtcTime time_of(std::string_view name, std::string_view text);
/// A time from now on, up to a century.
std::chrono::milliseconds delay_of(std::string_view name, double seconds);
task::Labels labels_of(task::Labels labels);
/// Refuses two ways to say when, at the same time.
void check_one_delay(bool has_delay, bool has_time);
/// A time in seconds.
std::optional<base::Duration> patience_of(std::string_view name, std::optional<double> seconds);

}  // namespace duet::app

template <>
struct duet::rpc::EnumWords<duet::task::ListQuery::Sort> {
  using Sort = task::ListQuery::Sort;
  static constexpr std::array<EnumWord<Sort>, 4> list{
      {{Sort::newest, "newest"}, {Sort::oldest, "oldest"}, {Sort::priority, "priority"}, {Sort::ended, "ended"}}};
};

template <>
struct duet::rpc::EnumWords<duet::app::Streams> {
  static constexpr std::array<EnumWord<app::Streams>, 3> list{
      {{app::Streams::both, "both"}, {app::Streams::out, "stdout"}, {app::Streams::err, "stderr"}}};
};

template <>
struct duet::rpc::EnumWords<duet::app::Encoding> {
  static constexpr std::array<EnumWord<app::Encoding>, 2> list{
      {{app::Encoding::utf_8, "utf-8"}, {app::Encoding::base64, "base64"}}};
};
