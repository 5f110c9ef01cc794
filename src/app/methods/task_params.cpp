#include "app/methods/task_params.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/words/blank.h"
#include "duet/rpc/error.h"
#include "task/refusal.h"

namespace duet::app {
namespace {

constexpr std::size_t longest_key = 1024;
constexpr std::int64_t most_retries = 1'000'000;
constexpr double longest_seconds = 1e9;  // decades; longer is the same

double seconds_of(const rpc::Params& params, std::string_view name, bool zero_too) {
  const double seconds = *params.number(name);
  if (seconds > 0 || (zero_too && seconds == 0)) return std::min(seconds, longest_seconds);
  throw rpc::invalid_params(name, zero_too ? "number from 0 on" : "number above 0", "number");
}

process::Environment environment_of(const rpc::Params& params) {
  process::Environment environment;
  if (!params.has("env")) return environment;
  const boost::json::value given = params.value("env");
  for (const auto& [name, value] : given.get_object()) {
    if (!value.is_string()) throw rpc::invalid_params("env", "object of strings", "object");
    environment[std::string(name)] = value.get_string();
  }
  return environment;
}

std::vector<task::TaskId> dependencies_of(const rpc::Params& params) {
  std::vector<task::TaskId> ids;
  if (!params.has("after")) return ids;
  const boost::json::value given = params.value("after");
  for (const boost::json::value& value : given.get_array()) {
    if (!value.is_string()) throw rpc::invalid_params("after", "array of task ids", "array");
    const std::optional<task::TaskId> id = task::parse_task_id(value.get_string());
    if (!id) throw task::unknown_task(value.get_string());
    ids.push_back(*id);
  }
  return ids;
}

}  // namespace

task::Submission submission_of(const rpc::Params& params) {
  task::Submission submission{.prompt = prompt_of(params, "prompt"), .agent = params.text("agent")};
  submission.priority = params.integer("priority").value_or(0);
  if (params.has("key")) {
    submission.key = *params.text("key");
    if (submission.key.empty() || submission.key.size() > longest_key) {
      throw rpc::invalid_params("key", "string of 1 to " + std::to_string(longest_key) + " bytes", "string");
    }
  }
  submission.cwd = params.text("cwd").value_or(std::string());
  submission.env = environment_of(params);
  if (params.has("timeoutSeconds")) {
    const std::chrono::duration<double> limit(seconds_of(params, "timeoutSeconds", false));
    submission.time_limit = std::chrono::ceil<std::chrono::milliseconds>(limit);
  }
  submission.retries = static_cast<std::uint32_t>(count_of(params, "retries", 0, 0, most_retries));
  submission.after = dependencies_of(params);
  return submission;
}

std::string prompt_of(const rpc::Params& params, std::string_view name) {
  std::string text = *params.text(name);
  if (is_blank(text)) throw rpc::invalid_params(name, "string that is not blank", "string");
  return text;
}

task::TaskId task_id_of(const rpc::Params& params, std::string_view name) {
  const std::string text = *params.text(name);
  const std::optional<task::TaskId> id = task::parse_task_id(text);
  if (!id) throw task::unknown_task(text);
  return *id;
}

std::uint64_t count_of(const rpc::Params& params, std::string_view name, std::uint64_t otherwise, std::uint64_t least,
                       std::uint64_t most) {
  const std::optional<std::int64_t> given = params.integer(name);
  if (!given) return otherwise;
  if (*given < static_cast<std::int64_t>(least)) {
    throw rpc::invalid_params(name, "integer from " + std::to_string(least) + " on", "number");
  }
  return std::min(static_cast<std::uint64_t>(*given), most);
}

std::optional<base::Duration> patience_of(const rpc::Params& params, std::string_view name) {
  if (!params.has(name)) return std::nullopt;
  const std::chrono::duration<double> time(seconds_of(params, name, true));
  return std::chrono::duration_cast<base::Duration>(time);
}

}  // namespace duet::app
