#include "app/view/task_view.h"

#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "app/view/display_text.h"
#include "app/words/bytes.h"
#include "app/words/duration.h"
#include "duet/rpc/value.h"
#include "process/launch.h"

namespace duet::app {
namespace {

using boost::json::object;
using boost::json::value;

constexpr int cancelled_code = 130;
constexpr int failed_code = 1;
constexpr int signal_base = 128;

int signal_number(const std::string& name) {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    if (process::signal_name(signal) == name) return signal;
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

// The last lines of a longer text, each made harmless.
std::string last_lines(std::string_view text, std::size_t count) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::vector<std::string_view> lines;
  while (!text.empty() && lines.size() < count) {
    const std::size_t end = text.rfind('\n');
    lines.push_back(text.substr(end == std::string_view::npos ? 0 : end + 1));
    text = text.substr(0, end == std::string_view::npos ? 0 : end);
  }
  std::string out = text.empty() ? "" : "  [...]\n";
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) out += "  " + one_line(*line) + '\n';
  return out;
}

const object& metadata_of(const object& record) {
  static const object none;
  const value* const found = record.if_contains("metadata");
  return found != nullptr && found->is_object() ? found->get_object() : none;
}

std::string listed(const object& metadata, std::string_view name) {
  const value* const found = metadata.if_contains(name);
  std::string out;
  if (found == nullptr || !found->is_array()) return out;
  for (const value& entry : found->get_array()) {
    if (entry.is_string()) out.append(out.empty() ? "" : ", ").append(entry.get_string());
  }
  return out;
}

// `k=v, x=y`
std::string pairs_in(const object& record, std::string_view name) {
  const value* const found = record.if_contains(name);
  std::string out;
  if (found == nullptr || !found->is_object()) return out;
  for (const auto& member : found->get_object()) {
    out += (out.empty() ? "" : ", ") + std::string(member.key()) + "=" + member_text(found->get_object(), member.key());
  }
  return out;
}

std::string time_limit_in(const object& metadata) {
  const value* const found = metadata.if_contains("timeoutSeconds");
  if (found == nullptr || !found->is_number()) return {};
  const std::chrono::duration<double> limit(found->to_number<double>());
  return readable_duration(std::chrono::duration_cast<std::chrono::milliseconds>(limit));
}

/// `name    text`, line by line; what says nothing is left out.
class Rows {
 public:
  explicit Rows(const TextStyle& style) : style_(style) {}

  void add(std::string_view name, const std::string& text) {
    constexpr std::size_t name_width = 12;
    if (!text.empty()) out_ += style_.name(name) + std::string(name_width - name.size(), ' ') + one_line(text) + '\n';
  }
  void add_text(std::string_view name, std::string_view text, std::size_t most_lines) {
    if (!text.empty()) out_ += style_.name(name) + '\n' + last_lines(text, most_lines);
  }
  std::string take() { return std::move(out_); }

 private:
  const TextStyle& style_;
  std::string out_;
};

// What it has used; empty if that is not known.
std::string usage_of(const object& record) {
  const value* const cpu = record.if_contains("cpuSeconds");
  if (cpu == nullptr || !cpu->is_number()) return {};
  const auto bytes = [&](std::string_view name) {
    const value* const found = record.if_contains(name);
    return readable_bytes(found != nullptr && found->is_number() ? found->to_number<std::uint64_t>() : 0);
  };
  const value* const dropped = record.if_contains("outputDropped");
  const std::chrono::duration<double> time(cpu->to_number<double>());
  return readable_duration(std::chrono::round<std::chrono::milliseconds>(time)) + " of CPU time, " +
         bytes("maxMemory") + " of memory, " + bytes("outputBytes") + " of output" +
         (dropped != nullptr && dropped->is_bool() && dropped->get_bool() ? ", which was let go" : "");
}

// What a record of a shared queue has besides.
void add_shared_rows(Rows& rows, const object& record) {
  const bool is_silent = member_text(record, "silent") == "true";
  rows.add("waits for", member_text(record, "waitingFor"));
  rows.add("worker", member_text(record, "worker") + (is_silent ? " (not heard of)" : ""));
  rows.add("needs", listed(record, "needs"));
  if (member_text(record, "onLost") == "retry") rows.add("if lost", "runs again elsewhere");
  rows.add("role", member_text(record, "submittedBy"));
  const value* const late = record.if_contains("late");
  if (late == nullptr || !late->is_object()) return;
  const std::string signal = member_text(late->get_object(), "signal");
  const std::string how = signal.empty() ? "exit code " + member_text(late->get_object(), "exitCode") : signal;
  rows.add("late end", how + " at " + member_text(late->get_object(), "completedAt") + ", which does not count");
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

std::string task_page(const object& record, const TextStyle& style, base::UtcTime now) {
  Rows rows(style);
  const auto time = [&](std::string_view name) {
    const std::string text = member_text(record, name);
    return text.empty() ? text : text + " (" + relative_time(text, now) + ")";
  };
  const object& metadata = metadata_of(record);
  rows.add("id", member_text(record, "id"));
  rows.add("state", outcome_of(record));
  rows.add("agent", member_text(record, "agent"));
  rows.add("group", member_text(record, "group"));
  rows.add("labels", pairs_in(record, "labels"));
  rows.add("held", member_text(record, "held") == "true" ? "until it is released" : "");
  rows.add("not before", time("notBefore"));
  rows.add("next try", time("retryAt"));
  rows.add("priority", member_text(record, "priority"));
  rows.add("key", member_text(metadata, "key"));
  rows.add("folder", member_text(metadata, "cwd"));
  rows.add("after", listed(metadata, "after"));
  rows.add("retries", member_text(metadata, "retries"));
  rows.add("time limit", time_limit_in(metadata));
  add_shared_rows(rows, record);
  rows.add("came from", member_text(metadata, "source"));
  if (const std::string by = member_text(metadata, "by"); by != "unix") rows.add("asked by", by);
  rows.add("created", time("createdAt"));
  rows.add("started", time("startedAt"));
  rows.add("ended", time("completedAt"));
  rows.add("ran", run_time_of(record, now));
  rows.add("pid", member_text(record, "pid"));
  rows.add("exit code", member_text(record, "exitCode"));
  rows.add("signal", member_text(record, "signal"));
  rows.add("attempts", member_text(record, "attempts"));
  rows.add("used", usage_of(record));
  rows.add_text("prompt", member_text(record, "prompt"), 20);
  rows.add_text("result", member_text(record, "result"), 10);
  return rows.take();
}

std::string cancel_line(const object& record) {
  return member_text(record, "id") + (has_ended(record) ? " " + one_line(outcome_of(record)) : " cancelling");
}

Table::Cell state_cell(const object& record) {
  const std::string state = member_text(record, "state");
  if (state == "completed") return {state, Table::Paint::good};
  if (state == "failed") return {state, Table::Paint::fault};
  if (state == "running") return {state, Table::Paint::name};
  if (state == "queued" && member_text(record, "held") == "true") return {"held", Table::Paint::faint};
  return {state};
}

}  // namespace duet::app
