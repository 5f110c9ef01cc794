#include "task/submission_check.h"

#include <algorithm>
#include <set>

#include <boost/json/object.hpp>

#include "duet/rpc/value.h"

namespace duet::task {
namespace {

bool has_nul(std::string_view text) { return text.find('\0') != text.npos; }

// What the kernel could not pass on.
std::optional<rpc::Error> check_text(const Submission& submission) {
  if (has_nul(submission.cwd)) return rpc::invalid_params("cwd", "string without NUL", "string");
  for (const auto& [name, value] : submission.env) {
    const bool sound = !name.empty() && name.find('=') == name.npos && !has_nul(name) && !has_nul(value);
    if (!sound) return rpc::invalid_params("env", "object of names without `=` and values, none with a NUL", "object");
  }
  return std::nullopt;
}

// What a client gave, each limit by itself.
boost::json::object params_of(std::string_view body) {
  boost::json::object params = rpc::parse_value(body).as_object();
  const boost::json::value* const limits = params.if_contains("limits");
  if (limits == nullptr) return params;
  const boost::json::object each = limits->as_object();
  params.erase("limits");
  for (const auto& [name, value] : each) params.insert_or_assign(name, value);
  return params;
}

// A priority that none would be, too, makes no difference. Version 0.1 wrote a 0 that nobody had given, and left out
// retries of 0 that somebody had.
void allow_for_defaults(boost::json::object& known, boost::json::object& asked, std::int64_t usual) {
  const auto is = [](const boost::json::object& params, const char* name, std::int64_t number) {
    const boost::json::value* const found = params.if_contains(name);
    return found != nullptr && *found == number;
  };
  const bool may_be_older = known.contains("priority");  // it always wrote one
  if (!asked.contains("priority") && is(known, "priority", 0)) known.erase("priority");
  if (!known.contains("priority") && is(asked, "priority", usual)) asked.erase("priority");
  if (may_be_older && !known.contains("retries") && is(asked, "retries", 0)) asked.erase("retries");
}

void sort_and_deduplicate(std::vector<TaskId>& ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

std::optional<rpc::Error> check_submission(Submission& submission) {
  if (std::optional<rpc::Error> refusal = check_text(submission)) return refusal;
  sort_and_deduplicate(submission.after);
  if (submission.after.size() <= most_dependencies) return std::nullopt;
  return rpc::invalid_params("after", "array of at most " + std::to_string(most_dependencies) + " ids", "array");
}

std::int64_t usual_priority(const Agents& agents, const Submission& submission) {
  const tl::expected<std::string, rpc::Error> name = agents.choose(submission);
  Submission without;
  agents.add_defaults(without, name.value_or(""));
  return *without.priority;
}

std::vector<std::string> differences(std::string_view known, std::string_view asked, std::int64_t usual_priority) {
  if (known == asked) return {};
  boost::json::object before = params_of(known);
  boost::json::object now = params_of(asked);
  allow_for_defaults(before, now, usual_priority);
  std::set<std::string> names;
  const auto compare = [&names](const boost::json::object& one, const boost::json::object& other) {
    for (const auto& [name, value] : one) {
      const boost::json::value* const found = other.if_contains(name);
      if (found != nullptr && *found == value) continue;
      names.insert(name == "timeLimit" ? "timeoutSeconds" : name == "delay" ? "delaySeconds" : std::string(name));
    }
  };
  compare(before, now);
  compare(now, before);
  return {names.begin(), names.end()};
}

}  // namespace duet::task
