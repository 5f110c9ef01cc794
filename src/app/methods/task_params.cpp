#include "app/methods/task_params.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "app/words/blank.h"
#include "duet/rpc/error.h"
#include "task/refusal.h"

namespace duet::app {
namespace {

constexpr std::size_t longest_key = 1024;
constexpr std::int64_t most_retries = 1'000'000;
constexpr double longest_seconds = 1e9;  // decades; longer is the same

double seconds_of(std::string_view name, double seconds, bool zero_too) {
  if (seconds > 0 || (zero_too && seconds == 0)) return std::min(seconds, longest_seconds);
  throw rpc::invalid_params(name, zero_too ? "number from 0 on" : "number above 0", "number");
}

std::string key_of(std::string key) {
  if (!key.empty() && key.size() <= longest_key) return key;
  throw rpc::invalid_params("key", "string of 1 to " + std::to_string(longest_key) + " bytes", "string");
}

}  // namespace

task::Submission submission_of(Submit submit) {
  task::Submission submission{.prompt = prompt_of("prompt", std::move(submit.prompt)),
                              .agent = std::move(submit.agent)};
  submission.priority = submit.priority;
  if (submit.key) submission.key = key_of(std::move(*submit.key));
  if (submit.cwd) submission.cwd = std::move(*submit.cwd);
  if (submit.env) submission.env = std::move(*submit.env);
  if (submit.timeoutSeconds) {
    const std::chrono::duration<double> limit(seconds_of("timeoutSeconds", *submit.timeoutSeconds, false));
    submission.time_limit = std::chrono::ceil<std::chrono::milliseconds>(limit);
  }
  submission.retries = static_cast<std::uint32_t>(count_of("retries", submit.retries, 0, most_retries));
  if (submit.after) {
    for (const std::string& text : *submit.after) submission.after.push_back(task_id_of(text));
  }
  return submission;
}

std::string prompt_of(std::string_view name, std::string text) {
  if (is_blank(text)) throw rpc::invalid_params(name, "string that is not blank", "string");
  return text;
}

task::TaskId task_id_of(std::string_view text) {
  const std::optional<task::TaskId> id = task::parse_task_id(text);
  if (!id) throw task::unknown_task(text);
  return *id;
}

std::uint64_t count_of(std::string_view name, std::int64_t given, std::uint64_t least, std::uint64_t most) {
  if (given < static_cast<std::int64_t>(least)) {
    throw rpc::invalid_params(name, "integer from " + std::to_string(least) + " on", "number");
  }
  return std::min(static_cast<std::uint64_t>(given), most);
}

std::optional<base::Duration> patience_of(std::string_view name, std::optional<double> seconds) {
  if (!seconds) return std::nullopt;
  const std::chrono::duration<double> time(seconds_of(name, *seconds, true));
  return std::chrono::duration_cast<base::Duration>(time);
}

}  // namespace duet::app
