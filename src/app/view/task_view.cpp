#include "app/view/task_view.h"

#include <csignal>
#include <optional>

#include "app/words/duration.h"
#include "duet/base/process.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;
using boost::json::value;

constexpr int cancelled_code = 130;
constexpr int failed_code = 1;
constexpr int signal_base = 128;

int signal_number(const std::string& name) {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (base::signal_name(signal) == name) return signal;
  }
  return 0;
}

std::string failure_text(const object& record) {
  const value* const error = record.if_contains("error");
  if (error != nullptr && error->is_object()) {
    const std::string message = member_text(error->get_object(), "message");
    return message.empty() ? member_text(error->get_object(), "reason") : message;
  }
  return {};
}

}  // namespace

std::string member_text(const object& record, std::string_view name) {
  const value* const found = record.if_contains(name);
  if (found == nullptr || found->is_null()) return {};
  return found->is_string() ? std::string(found->get_string()) : rpc::to_text(*found);
}

bool has_ended(const object& record) {
  const std::string state = member_text(record, "state");
  return state == "completed" || state == "failed" || state == "cancelled";
}

int exit_code_of(const object& record) {
  const std::string state = member_text(record, "state");
  if (state == "cancelled") return cancelled_code;
  if (const std::string signal = member_text(record, "signal"); !signal.empty()) {
    const int number = signal_number(signal);
    return number > 0 ? signal_base + number : failed_code;
  }
  if (state == "completed") return 0;
  const value* const code = record.if_contains("exitCode");
  // A task that was ended at its time limit has failed, though it may have gone with 0.
  const bool has_code = code != nullptr && code->is_int64() && code->get_int64() != 0;
  return has_code ? static_cast<int>(code->get_int64()) : failed_code;
}

std::string outcome_of(const object& record) {
  const std::string state = member_text(record, "state");
  const std::string why = state == "failed" ? failure_text(record) : std::string();
  return why.empty() ? state : state + ": " + why;
}

std::string run_time_of(const object& record, base::UtcTime now) {
  const std::optional<base::UtcTime> started = parse_time(member_text(record, "startedAt"));
  if (!started) return {};
  const std::optional<base::UtcTime> ended = parse_time(member_text(record, "completedAt"));
  if (!ended && member_text(record, "state") != "running") return {};  // between two attempts
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(ended.value_or(now) - *started);
  return readable_duration(std::max(time, std::chrono::milliseconds(0)));
}

Table::Cell state_cell(const object& record) {
  const std::string state = member_text(record, "state");
  if (state == "completed") return {state, Table::Paint::good};
  if (state == "failed") return {state, Table::Paint::fault};
  if (state == "running") return {state, Table::Paint::name};
  return {state};
}

}  // namespace duet::app
