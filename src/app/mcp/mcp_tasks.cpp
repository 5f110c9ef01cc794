#include "app/mcp/mcp_tasks.h"

#include <algorithm>
#include <chrono>

#include <boost/json/value.hpp>

#include "bridge/json_members.h"
#include "task/time_text.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;
using boost::json::value;
using bridge::text_member;
using std::chrono::milliseconds;

constexpr std::size_t handle_letters = 26;
constexpr milliseconds kept_after_end = std::chrono::hours(24);

base::UtcTime time_in(const object& record, std::string_view name) {
  return task::parse_time(text_member(record, name)).value_or(base::UtcTime());
}

std::string_view changed_at(const object& record) {
  for (const std::string_view name : {"completedAt", "startedAt"}) {
    if (const std::string_view time = text_member(record, name); !time.empty()) return time;
  }
  return text_member(record, "createdAt");
}

std::string_view status_of(const object& record, bool is_modern) {
  const std::string_view state = state_of(record);
  if (!has_ended(record)) return "working";
  return is_modern && state == "failed" ? "completed" : state;
}

milliseconds age(const object& record, base::UtcTime now) {
  const base::UtcTime until = has_ended(record) ? time_in(record, "completedAt") : now;
  const auto passed = std::chrono::duration_cast<milliseconds>(until - time_in(record, "createdAt"));
  return std::max(passed, milliseconds(0));
}

std::string message_of(const GivenTask& task, base::UtcTime now) {
  const object& record = task.view.record;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(age(record, now)).count();
  const std::string state = task.is_cancelling ? "cancelling" : std::string(state_of(record));
  return std::string(id_of(record)) + ' ' + state + ", " + std::to_string(seconds) + " s, " +
         grouped(task.view.output_bytes) + " bytes of output";
}

value ttl_of(const object& record) {
  if (!has_ended(record)) return nullptr;
  return (age(record, {}) + kept_after_end).count();
}

std::int64_t poll_interval(const object& record, base::UtcTime now) {
  constexpr std::chrono::minutes eager{1};
  return age(record, now) < eager ? 1000 : 5000;
}

object common(const GivenTask& task, bool is_modern, base::UtcTime now) {
  const object& record = task.view.record;
  return {{"taskId", task.handle},
          {"status", status_of(record, is_modern)},
          {"statusMessage", message_of(task, now)},
          {"createdAt", text_member(record, "createdAt")},
          {"lastUpdatedAt", changed_at(record)}};
}

}  // namespace

bool is_handle(std::string_view text) {
  const std::size_t dash = text.rfind('-');
  return text.starts_with("task-") && dash != text.npos && dash > 5 && text.size() - dash - 1 == handle_letters;
}

object modern_task(const GivenTask& task, base::UtcTime now) {
  object out = common(task, true, now);
  out["ttlMs"] = ttl_of(task.view.record);
  out["pollIntervalMs"] = poll_interval(task.view.record, now);
  return out;
}

object legacy_task(const GivenTask& task, base::UtcTime now) {
  object out = common(task, false, now);
  out["ttl"] = ttl_of(task.view.record);
  out["pollInterval"] = poll_interval(task.view.record, now);
  return out;
}

ToolResult run_answer(const TaskView& task, std::string_view root, std::size_t max_bytes) {
  ToolResult result = task_answer(task, root, max_bytes);
  result.is_error = has_ended(task.record) && state_of(task.record) != "completed";
  return result;
}

}  // namespace duet::app::mcp
