#include "task/postgres/records.h"

#include <sys/random.h>

#include <array>
#include <chrono>

#include <boost/json/array.hpp>

#include "duet/base/fd.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

namespace duet::task::postgres {
namespace {

namespace json = boost::json;

json::object parsed_object(std::string_view text) {
  if (!rpc::is_valid_json(text)) return {};
  json::value value = rpc::parse_value(text);
  return value.is_object() ? std::move(value.get_object()) : json::object();
}

std::string unquoted(std::string_view text) {
  if (!rpc::is_valid_json(text)) return {};
  const json::value value = rpc::parse_value(text);
  return value.is_string() ? std::string(value.get_string()) : std::string();
}

std::optional<base::UtcTime> time_at(const Result& rows, std::size_t row, std::string_view column) {
  const auto milliseconds = rows.number(row, rows.column(column));
  return milliseconds ? std::optional(time_of(*milliseconds)) : std::nullopt;
}

Progress progress_of(const Result& rows, std::size_t row) {
  const auto number = [&](std::string_view column) { return rows.number(row, rows.column(column)); };
  const auto count = [&](std::string_view column) { return static_cast<std::uint32_t>(number(column).value_or(0)); };
  Progress progress;
  progress.state = static_cast<State>(number("state").value_or(0));
  progress.cancelling = rows.flag(row, rows.column("cancelling"));
  progress.attempts = count("attempts");
  progress.spared = count("spared") + count("lost");
  progress.retry_at = time_at(rows, row, "retry_ms");
  progress.started_at = time_at(rows, row, "started_ms");
  progress.completed_at = time_at(rows, row, "completed_ms");
  progress.pid = number("pid");
  progress.exit_code = number("exit_code");
  progress.signal = rows.text(row, rows.column("signal"));
  if (const auto reason = number("error_reason")) {
    progress.error = {static_cast<Reason>(*reason), std::string(rows.text(row, rows.column("error_message")))};
  }
  return progress;
}

SharedFacts shared_of(const Result& rows, std::size_t row) {
  const auto text = [&](std::string_view column) { return std::string(rows.text(row, rows.column(column))); };
  return {.worker = text("worker"),
          .on_lost = static_cast<OnLost>(rows.number(row, rows.column("on_lost")).value_or(0)),
          .needs = split(text("needs")),
          .silent = rows.flag(row, rows.column("silent")),
          .late = text("late"),
          .submitted_by = text("submitted_by"),
          .waiting_for = text("waiting_for")};
}

std::optional<Usage> usage_of(const Result& rows, std::size_t row) {
  const auto cpu = rows.number(row, rows.column("cpu_us"));
  if (!cpu) return std::nullopt;
  const auto number = [&](std::string_view column) {
    return static_cast<std::uint64_t>(rows.number(row, rows.column(column)).value_or(0));
  };
  return Usage{.cpu = std::chrono::microseconds(*cpu),
               .max_memory = number("max_memory"),
               .output_bytes = number("output_bytes")};
}

}  // namespace

std::string joined(const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? "" : std::string(1, between_labels)) + label;
  return text;
}

std::vector<std::string> split(std::string_view labels) {
  std::vector<std::string> list;
  while (!labels.empty()) {
    const std::size_t end = labels.find(between_labels);
    list.emplace_back(labels.substr(0, end));
    labels.remove_prefix(end == labels.npos ? labels.size() : end + 1);
  }
  return list;
}

Task task_of(const Result& rows, std::size_t row) {
  const auto text = [&](std::string_view column) { return rows.text(row, rows.column(column)); };
  Task task{.id = static_cast<TaskId>(rows.number(row, rows.column("id")).value_or(0)),
            .prompt = unquoted(text("prompt")),
            .agent = std::string(text("agent")),
            .group = std::string(text("grp")),
            .priority = rows.number(row, rows.column("priority")).value_or(0),
            .held = rows.flag(row, rows.column("held")),
            .created_at = time_at(rows, row, "created_ms").value_or(base::UtcTime()),
            .not_before = time_at(rows, row, "not_before_ms"),
            .progress = progress_of(rows, row)};
  for (const auto& [name, value] : parsed_object(text("labels"))) {
    if (value.is_string()) task.labels[std::string(name)] = std::string(value.get_string());
  }
  task.result = rows.bytes(row, rows.column("result"));
  task.output_gone = rows.flag(row, rows.column("output_gone"));
  task.usage = usage_of(rows, row);
  task.metadata = parsed_object(text("metadata"));
  task.shared = shared_of(rows, row);
  return task;
}

json::object object_of(const Result& answer) { return parsed_object(answer.text()); }

std::optional<std::int64_t> optional_in(const json::object& object, std::string_view name) {
  const json::value* const found = object.if_contains(name);
  boost::system::error_code fault;
  if (found == nullptr || !found->is_number()) return std::nullopt;
  const auto number = found->to_number<std::int64_t>(fault);
  return fault ? std::nullopt : std::optional(number);
}

std::int64_t number_in(const json::object& object, std::string_view name) {
  return optional_in(object, name).value_or(0);
}

std::string text_in(const json::object& object, std::string_view name) {
  const json::value* const found = object.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

bool flag_in(const json::object& object, std::string_view name) {
  const json::value* const found = object.if_contains(name);
  return found != nullptr && found->is_bool() && found->get_bool();
}

std::vector<std::string> texts_in(const json::object& object, std::string_view name) {
  std::vector<std::string> texts;
  for (const json::value& each : array_in(object, name)) {
    if (each.is_string()) texts.emplace_back(each.get_string());
  }
  return texts;
}

const json::array& array_in(const json::object& object, std::string_view name) {
  static const json::array none;
  const json::value* const found = object.if_contains(name);
  return found != nullptr && found->is_array() ? found->get_array() : none;
}

base::UtcTime time_of(std::int64_t milliseconds) { return base::UtcTime(std::chrono::milliseconds(milliseconds)); }

std::string prompt_text(std::string_view prompt) {
  const std::string_view kept =
      prompt.size() <= kept_prompt ? prompt : rpc::whole_characters(prompt.substr(0, kept_prompt));
  return rpc::to_text(json::value(std::string(kept)));
}

std::string random_uuid() {
  std::array<unsigned char, 16> bytes{};
  base::check_call(static_cast<int>(getrandom(bytes.data(), bytes.size(), 0)), "getrandom");
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    if (at == 4 || at == 6 || at == 8 || at == 10) text += '-';
    text += "0123456789abcdef"[bytes.at(at) >> 4U];
    text += "0123456789abcdef"[bytes.at(at) & 15U];
  }
  return text;
}

}  // namespace duet::task::postgres
