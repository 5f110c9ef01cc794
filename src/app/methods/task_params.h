#pragma once

#include <array>
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
#include "task/task.h"

namespace duet::app {

/// The params of `task.submit`.
struct Submit {
  std::string prompt;
  std::optional<std::string> agent;
  std::int64_t priority = 0;
  std::optional<std::string> key;
  std::optional<std::string> cwd;
  std::optional<std::map<std::string, std::string, std::less<>>> env;
  std::optional<double> timeoutSeconds;
  std::int64_t retries = 0;
  std::optional<std::vector<std::string>> after;
};
BOOST_DESCRIBE_STRUCT(Submit, (), (prompt, agent, priority, key, cwd, env, timeoutSeconds, retries, after))

/// How `task.output` gives bytes.
enum class Encoding : std::uint8_t { utf_8, base64 };

// What types cannot say about params. Each throws rpc::Error if what was given cannot be meant.

task::Submission submission_of(Submit submit);
/// A text for an agent, which has to say something: one of blanks and line ends only is refused.
std::string prompt_of(std::string_view name, std::string text);
/// A task nobody has heard of is unknown, however it is spelt.
task::TaskId task_id_of(std::string_view text);
/// A whole number from `least` on; more than `most` means `most`.
std::uint64_t count_of(std::string_view name, std::int64_t given, std::uint64_t least, std::uint64_t most);
/// A time in seconds.
std::optional<base::Duration> patience_of(std::string_view name, std::optional<double> seconds);

}  // namespace duet::app

template <>
struct duet::rpc::EnumWords<duet::app::Encoding> {
  static constexpr std::array<EnumWord<app::Encoding>, 2> list{
      {{app::Encoding::utf_8, "utf-8"}, {app::Encoding::base64, "base64"}}};
};
