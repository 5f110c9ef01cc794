#include "app/methods/task_params.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "app/words/blank.h"
#include "duet/rpc/error.h"
#include "duet/rpc/json_text.h"
#include "task/refusal.h"
#include "task/time_text.h"

namespace duet::app {
namespace {

constexpr std::size_t longest_key = 1024;
constexpr std::int64_t most_retries = 1'000'000;
constexpr std::uint64_t most_processes = 4'000'000;
constexpr double longest_seconds = 1e9;  // decades; longer is the same

double seconds_of(std::string_view name, double seconds, bool zero_too) {
  if (seconds > 0 || (zero_too && seconds == 0)) return std::min(seconds, longest_seconds);
  throw rpc::invalid_params(name, zero_too ? "number from 0 on" : "number above 0", "number");
}

std::string key_of(std::string key) {
  if (!key.empty() && key.size() <= longest_key) return key;
  throw rpc::invalid_params("key", "string of 1 to " + std::to_string(longest_key) + " bytes", "string");
}

process::Limits limits_of(const Submit& submit) {
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  constexpr double most_cores = 10'000;
  process::Limits limits;
  if (submit.memory) limits.memory = count_of("memory", *submit.memory, process::Limits::least_memory, most);
  if (submit.processes) limits.processes = count_of("processes", *submit.processes, 1, most_processes);
  if (!submit.cpu) return limits;
  if (!(*submit.cpu >= process::Limits::least_cpu)) throw rpc::invalid_params("cpu", "number from 0.01 on", "number");
  limits.cpu = std::min(*submit.cpu, most_cores);
  return limits;
}

// In one order, each once.
std::vector<std::string> needs_of(std::vector<std::string> needs) {
  constexpr std::size_t most = 16;
  constexpr std::size_t longest = 64;
  constexpr std::string_view name = "name=";  // before a name of a worker, which may itself be as long
  const auto most_of = [&name](std::string_view label) {
    return longest + (label.starts_with(name) ? name.size() : 0);
  };
  std::ranges::sort(needs);
  needs.erase(std::unique(needs.begin(), needs.end()), needs.end());
  const bool sound = needs.size() <= most && std::ranges::all_of(needs, [&](const std::string& label) {
                       return !label.empty() && label.size() <= most_of(label) &&
                              std::ranges::none_of(label, [](unsigned char byte) { return byte < 0x20; });
                     });
  if (sound) return needs;
  throw rpc::invalid_params(
      "needs", "at most 16 labels of 1 to 64 bytes (behind `name=`, too), without control characters", "array");
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
  if (submit.retries) {
    submission.retries = static_cast<std::uint32_t>(count_of("retries", *submit.retries, 0, most_retries));
  }
  if (submit.after) {
    for (const std::string& text : *submit.after) submission.after.push_back(task_id_of(text));
  }
  if (submit.group) submission.group = std::move(*submit.group);
  if (submission.group.empty() && submit.group) throw rpc::invalid_params("group", "the name of a group", "");
  check_one_delay(submit.delaySeconds.has_value(), submit.notBefore.has_value());
  if (submit.delaySeconds) submission.delay = delay_of("delaySeconds", *submit.delaySeconds);
  if (submit.notBefore) submission.not_before = time_of("notBefore", *submit.notBefore);
  if (submit.labels) submission.labels = labels_of(std::move(*submit.labels));
  submission.limits = limits_of(submit);
  submission.on_lost = submit.onLost;
  if (submit.needs) submission.needs = needs_of(std::move(*submit.needs));
  submission.here = submit.here;
  return submission;
}

base::UtcTime time_of(std::string_view name, std::string_view text) {
  if (const auto time = task::parse_time(text)) return *time;
  constexpr std::size_t shown = 64;
  throw rpc::invalid_params(name, "a time of ISO 8601 with its zone, as 2026-11-16T14:00:00Z",
                            rpc::first_characters(text, shown));
}

std::chrono::milliseconds delay_of(std::string_view name, double seconds) {
  constexpr double century = 100.0 * 365 * 24 * 3600;
  const double bounded = std::min(seconds_of(name, seconds, true), century);
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(bounded));
}

task::Labels labels_of(task::Labels labels) {
  constexpr std::size_t most = 64;
  constexpr std::size_t longest_name = 64;
  constexpr std::size_t longest_value = 1024;
  const bool sound =
      labels.size() <= most && std::ranges::all_of(labels, [](const auto& label) {
        return !label.first.empty() && label.first.size() <= longest_name && label.second.size() <= longest_value;
      });
  if (sound) return labels;
  throw rpc::invalid_params("labels", "at most 64 names of 1 to 64 bytes, with values of at most 1024", "object");
}

void check_one_delay(bool has_delay, bool has_time) {
  if (has_delay && has_time) throw rpc::invalid_params("notBefore", "nothing beside delaySeconds", "string");
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
