#include "task/task.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include <boost/json/array.hpp>

#include "duet/base/utc_text.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_write.h"
#include "duet/rpc/object_text.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"
#include "task/text_or_bytes.h"

namespace duet::task {
namespace {

namespace json = boost::json;

constexpr std::string_view id_prefix = "task-";

template <typename Value>
json::value or_null(const std::optional<Value>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

json::value or_null(const std::optional<base::UtcTime>& time) {
  return time ? json::value(base::utc_text(*time)) : nullptr;
}

json::value error_of(const std::optional<Failure>& error) {
  if (!error) return nullptr;
  return {{"reason", name_of(error->reason)}, {"message", error->message}};
}

// A task that has run and written nothing has an empty one, which the store does not keep.
json::value result_of(const Task& task) {
  if (task.result) return json::value(rpc::without_rest(*task.result));
  return has_ended(task.progress.state) && task.progress.pid ? json::value("") : json::value(nullptr);
}

json::array ids_of(const std::vector<TaskId>& ids) {
  json::array out;
  for (const TaskId id : ids) out.emplace_back(to_text(id));
  return out;
}

json::array texts_of(const std::vector<std::string>& texts) {
  json::array out;
  for (const std::string& text : texts) out.emplace_back(text);
  return out;
}

std::optional<std::int64_t> number_at(const json::object& body, std::string_view name) {
  const json::value* const found = body.if_contains(name);
  return found != nullptr ? std::optional(found->to_number<std::int64_t>()) : std::nullopt;
}

double seconds(std::chrono::microseconds time) { return std::chrono::duration<double>(time).count(); }

json::object to_json(const process::Limits& limits) {
  json::object out;
  if (limits.memory) out["memory"] = *limits.memory;
  if (limits.processes) out["processes"] = *limits.processes;
  if (limits.cpu) out["cpu"] = *limits.cpu;
  return out;
}

process::Limits limits_of(const json::object& saved) {
  process::Limits limits;
  if (const json::value* memory = saved.if_contains("memory")) limits.memory = memory->to_number<std::uint64_t>();
  if (const json::value* most = saved.if_contains("processes")) limits.processes = most->to_number<std::uint64_t>();
  if (const json::value* cores = saved.if_contains("cpu")) limits.cpu = cores->to_number<double>();
  return limits;
}

// Name and value of what a record's metadata have of it.
template <typename Add>
void each_shown(const Submission& submission, Add add) {
  if (!submission.key.empty()) add("key", submission.key);
  if (!submission.cwd.empty()) add("cwd", submission.cwd);
  if (submission.time_limit) add("timeoutSeconds", seconds(*submission.time_limit));
  if (submission.retries.value_or(0) > 0) add("retries", *submission.retries);
  if (!submission.after.empty()) add("after", ids_of(submission.after));
  if (submission.limits.any()) {
    for (const auto& [name, value] : to_json(submission.limits)) add(name, value);
  }
  if (!submission.by.empty()) add("by", submission.by);
  if (const std::optional<Cause>& cause = submission.cause) {
    add("cause", json::object{{"taskId", to_text(cause->task)}, {"depth", cause->depth}});
  }
}

}  // namespace

std::string to_text(TaskId id) {
  std::array<char, id_prefix.size() + std::numeric_limits<TaskId>::digits10 + 1> text{};
  char* const digits = std::copy(id_prefix.begin(), id_prefix.end(), text.begin());
  return {text.data(), std::to_chars(digits, text.data() + text.size(), id).ptr};
}

std::optional<TaskId> parse_task_id(std::string_view text) {
  if (!text.starts_with(id_prefix)) return std::nullopt;
  text.remove_prefix(id_prefix.size());
  TaskId id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  constexpr TaskId most = INT64_MAX;  // what the store can hold
  return whole && id > 0 && id <= most && text.front() != '0' ? std::optional(id) : std::nullopt;
}

std::string_view name_of(State state) { return rpc::word_of(state); }

std::string_view name_of(Reason reason) { return rpc::word_of(reason); }

std::string to_body(const Submission& submission) {
  rpc::ObjectText body;
  body.add("prompt", submission.prompt);
  if (submission.priority) body.add("priority", *submission.priority);
  if (submission.agent) body.add("agent", *submission.agent);
  if (!submission.key.empty()) body.add("key", submission.key);
  if (!submission.cwd.empty()) body.add("cwd", submission.cwd);
  if (!submission.env.empty()) {
    json::object env;
    for (const auto& [name, value] : submission.env) env[name] = text_or_bytes(value);
    body.add_json("env", rpc::to_text(env));
  }
  if (submission.time_limit) body.add("timeLimit", submission.time_limit->count());
  if (submission.retries) body.add("retries", *submission.retries);
  if (!submission.after.empty()) body.add_json("after", rpc::to_text(ids_of(submission.after)));
  if (!submission.group.empty()) body.add("group", submission.group);
  if (submission.delay) body.add("delay", submission.delay->count());
  if (submission.not_before) body.add("notBefore", base::milliseconds_of(*submission.not_before));
  if (!submission.labels.empty()) body.add_json("labels", rpc::to_text(to_json(submission.labels)));
  if (submission.limits.any()) body.add_json("limits", rpc::to_text(to_json(submission.limits)));
  if (!submission.metadata.empty()) body.add_json("metadata", rpc::to_text(submission.metadata));
  if (submission.on_lost) body.add("onLost", rpc::word_of(*submission.on_lost));
  if (!submission.needs.empty()) body.add_json("needs", rpc::to_text(texts_of(submission.needs)));
  if (submission.here) body.add_json("here", "true");
  return body.take();
}

Failure dependency_failure(TaskId id) { return {Reason::dependency, to_text(id) + " did not succeed"}; }

Submission from_body(std::string_view text) {
  if (!rpc::is_valid_json(text)) throw std::invalid_argument("a task's request is damaged");
  const json::value parsed = rpc::parse_value(text);
  const json::object& body = parsed.as_object();
  const auto string_at = [&](std::string_view name) {
    const json::value* found = body.if_contains(name);
    return found != nullptr ? std::string(found->as_string()) : std::string();
  };
  Submission submission{.prompt = string_at("prompt"), .key = string_at("key"), .cwd = string_at("cwd")};
  submission.priority = number_at(body, "priority");
  if (body.contains("agent")) submission.agent = string_at("agent");
  if (const json::value* env = body.if_contains("env")) {
    for (const auto& [name, value] : env->as_object()) {
      submission.env[std::string(name)] = from_text_or_bytes(value);
    }
  }
  if (const auto limit = number_at(body, "timeLimit")) submission.time_limit = std::chrono::milliseconds(*limit);
  if (const json::value* retries = body.if_contains("retries")) {
    submission.retries = retries->to_number<std::uint32_t>();
  }
  if (const json::value* after = body.if_contains("after")) {
    for (const json::value& id : after->as_array()) submission.after.push_back(parse_task_id(id.as_string()).value());
  }
  submission.group = string_at("group");
  if (const auto delay = number_at(body, "delay")) submission.delay = std::chrono::milliseconds(*delay);
  if (const auto time = number_at(body, "notBefore")) {
    submission.not_before = base::UtcTime(std::chrono::milliseconds(*time));
  }
  if (const json::value* labels = body.if_contains("labels")) submission.labels = labels_of(labels->as_object());
  if (const json::value* limits = body.if_contains("limits")) submission.limits = limits_of(limits->as_object());
  if (const json::value* metadata = body.if_contains("metadata")) submission.metadata = metadata->as_object();
  if (const std::string lost = string_at("onLost"); !lost.empty()) {
    submission.on_lost = lost == rpc::word_of(OnLost::retry) ? OnLost::retry : OnLost::fail;
  }
  if (const json::value* needs = body.if_contains("needs")) {
    for (const json::value& label : needs->as_array()) submission.needs.emplace_back(label.as_string());
  }
  submission.here = body.contains("here");
  return submission;
}

json::object to_json(const Labels& labels) {
  json::object out;
  for (const auto& [name, value] : labels) out[name] = value;
  return out;
}

Labels labels_of(const json::object& saved) {
  Labels labels;
  for (const auto& [name, value] : saved) labels[std::string(name)] = std::string(value.as_string());
  return labels;
}

json::object shown_metadata(const Submission& submission) {
  json::object metadata = submission.metadata;
  each_shown(submission, [&metadata](std::string_view name, const auto& value) { metadata[name] = value; });
  return metadata;
}

std::string shown_metadata_text(const Submission& submission) {
  if (!submission.metadata.empty()) return rpc::to_text(shown_metadata(submission));
  rpc::ObjectText text;
  each_shown(submission, [&text](std::string_view name, const auto& value) {
    if constexpr (std::is_same_v<decltype(value), const std::string&>) {
      text.add(name, value);
    } else {
      text.add_json(name, rpc::to_text(json::value(value)));
    }
  });
  return text.take();
}

unsigned chain_depth(const json::object& metadata) {
  unsigned deepest = 0;
  for (const char* const name : {"cause", "automation"}) {
    const json::value* const origin = metadata.if_contains(name);
    const json::value* const depth =
        origin != nullptr && origin->is_object() ? origin->get_object().if_contains("depth") : nullptr;
    boost::system::error_code fault;
    const auto tasks = depth == nullptr ? 0U : depth->to_number<unsigned>(fault);
    if (!fault) deepest = std::max(deepest, tasks);
  }
  return deepest;
}

namespace {

void add_shared(json::object& record, const SharedFacts& shared) {
  record["worker"] = shared.worker.empty() ? json::value(nullptr) : json::value(shared.worker);
  record["onLost"] = rpc::word_of(shared.on_lost);
  record["needs"] = texts_of(shared.needs);
  record["submittedBy"] = shared.submitted_by;
  if (shared.silent) record["silent"] = true;
  if (!shared.late.empty() && rpc::is_valid_json(shared.late)) record["late"] = rpc::parse_value(shared.late);
  if (!shared.waiting_for.empty()) record["waitingFor"] = shared.waiting_for;
}

}  // namespace

json::object record_of(const Task& task) {
  const Progress& progress = task.progress;
  json::object record{{"id", to_text(task.id)},
                      {"prompt", task.prompt},
                      {"agent", task.agent},
                      {"group", task.group},
                      {"priority", task.priority},
                      {"state", name_of(progress.state)},
                      {"held", task.held},
                      {"createdAt", base::utc_text(task.created_at)},
                      {"notBefore", or_null(task.not_before)},
                      {"retryAt", progress.state == State::queued ? or_null(progress.retry_at) : nullptr},
                      {"startedAt", or_null(progress.started_at)},
                      {"completedAt", or_null(progress.completed_at)},
                      {"pid", or_null(progress.pid)},
                      {"exitCode", or_null(progress.exit_code)},
                      {"signal", progress.signal.empty() ? json::value(nullptr) : json::value(progress.signal)},
                      {"result", result_of(task)},
                      {"error", error_of(progress.error)},
                      {"attempts", progress.attempts},
                      {"cpuSeconds", task.usage ? json::value(seconds(task.usage->cpu)) : nullptr},
                      {"maxMemory", task.usage ? json::value(task.usage->max_memory) : nullptr},
                      {"outputBytes", task.usage ? json::value(task.usage->output_bytes) : nullptr},
                      {"outputDropped", task.output_gone},
                      {"attemptsNotCounted", progress.spared},
                      {"labels", to_json(task.labels)},
                      {"metadata", task.metadata}};
  if (task.shared) add_shared(record, *task.shared);
  return record;
}

}  // namespace duet::task
