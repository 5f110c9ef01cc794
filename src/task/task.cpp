#include "task/task.h"

#include <charconv>
#include <stdexcept>

#include <boost/json/array.hpp>

#include "duet/base/utc_text.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_write.h"
#include "duet/rpc/object_text.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

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

// JSON has no bytes; a file's name, as a rule passes it on, may be any.
json::value text_or_bytes(const std::string& value) {
  if (rpc::is_utf8(value)) return json::value(value);
  json::array bytes;
  for (const char c : value) bytes.emplace_back(static_cast<unsigned char>(c));
  return bytes;
}

std::string from_text_or_bytes(const json::value& saved) {
  if (const json::string* text = saved.if_string()) return std::string(*text);
  std::string bytes;
  for (const json::value& byte : saved.as_array()) bytes += static_cast<char>(byte.to_number<unsigned char>());
  return bytes;
}

double seconds(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

std::string to_text(TaskId id) { return std::string(id_prefix) + std::to_string(id); }

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
  body.add("prompt", submission.prompt).add("priority", submission.priority);
  if (submission.agent) body.add("agent", *submission.agent);
  if (!submission.key.empty()) body.add("key", submission.key);
  if (!submission.cwd.empty()) body.add("cwd", submission.cwd);
  if (!submission.env.empty()) {
    json::object env;
    for (const auto& [name, value] : submission.env) env[name] = text_or_bytes(value);
    body.add_json("env", rpc::to_text(env));
  }
  if (submission.time_limit) body.add("timeLimit", submission.time_limit->count());
  if (submission.retries > 0) body.add("retries", submission.retries);
  if (!submission.after.empty()) body.add_json("after", rpc::to_text(ids_of(submission.after)));
  if (!submission.metadata.empty()) body.add_json("metadata", rpc::to_text(submission.metadata));
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
  submission.priority = body.at("priority").to_number<std::int64_t>();
  if (body.contains("agent")) submission.agent = string_at("agent");
  if (const json::value* env = body.if_contains("env")) {
    for (const auto& [name, value] : env->as_object()) {
      submission.env[std::string(name)] = from_text_or_bytes(value);
    }
  }
  if (const json::value* limit = body.if_contains("timeLimit")) {
    submission.time_limit = std::chrono::milliseconds(limit->to_number<std::int64_t>());
  }
  if (const json::value* retries = body.if_contains("retries")) {
    submission.retries = retries->to_number<std::uint32_t>();
  }
  if (const json::value* after = body.if_contains("after")) {
    for (const json::value& id : after->as_array()) submission.after.push_back(parse_task_id(id.as_string()).value());
  }
  if (const json::value* metadata = body.if_contains("metadata")) submission.metadata = metadata->as_object();
  return submission;
}

json::object shown_metadata(const Submission& submission) {
  json::object metadata = submission.metadata;
  if (!submission.key.empty()) metadata["key"] = submission.key;
  if (!submission.cwd.empty()) metadata["cwd"] = submission.cwd;
  if (submission.time_limit) metadata["timeoutSeconds"] = seconds(*submission.time_limit);
  if (submission.retries > 0) metadata["retries"] = submission.retries;
  if (!submission.after.empty()) metadata["after"] = ids_of(submission.after);
  return metadata;
}

json::object record_of(const Task& task) {
  const Progress& progress = task.progress;
  return {{"id", to_text(task.id)},
          {"prompt", task.prompt},
          {"agent", task.agent},
          {"priority", task.priority},
          {"state", name_of(progress.state)},
          {"createdAt", base::utc_text(task.created_at)},
          {"startedAt", or_null(progress.started_at)},
          {"completedAt", or_null(progress.completed_at)},
          {"pid", or_null(progress.pid)},
          {"exitCode", or_null(progress.exit_code)},
          {"signal", progress.signal.empty() ? json::value(nullptr) : json::value(progress.signal)},
          {"result", result_of(task)},
          {"error", error_of(progress.error)},
          {"attempts", progress.attempts},
          {"metadata", task.metadata}};
}

}  // namespace duet::task
