#include "app/view/task_columns.h"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/json/object.hpp>

#include "app/view/display_text.h"
#include "app/view/task_view.h"
#include "app/words/near_miss.h"

namespace duet::app {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

constexpr std::size_t room_for_output = 100;  // columns of a terminal
constexpr std::size_t room_for_more = 120;
constexpr std::size_t room_for_reasons = 150;
constexpr std::size_t prompt_beside_output = 36;

// What a record has under a name, itself or in its metadata.
std::string anywhere(const object& record, std::string_view name) {
  std::string own = member_text(record, name);
  const value* const metadata = record.if_contains("metadata");
  if (!own.empty() || metadata == nullptr || !metadata->is_object()) return own;
  return member_text(metadata->get_object(), name);
}

std::string joined_members(const object& record, std::string_view name) {
  const value* found = record.if_contains(name);
  const value* const metadata = record.if_contains("metadata");
  if (found == nullptr && metadata != nullptr && metadata->is_object())
    found = metadata->get_object().if_contains(name);
  std::string out;
  const auto add = [&out](std::string_view text) { out.append(out.empty() ? "" : " ").append(text); };
  if (found != nullptr && found->is_object()) {
    for (const auto& member : found->get_object()) {
      add(std::string(member.key()) + "=" + member_text(found->get_object(), member.key()));
    }
  } else if (found != nullptr && found->is_array()) {
    for (const value& entry : found->get_array()) {
      if (entry.is_string()) add(entry.get_string());
    }
  }
  return out;
}

std::string error_of(const object& record) {
  const std::string outcome = outcome_of(record);
  const std::size_t colon = outcome.find(": ");
  return colon == std::string::npos ? std::string() : outcome.substr(colon + 2);
}

std::string when(const object& record, std::string_view name, base::UtcTime now) {
  return relative_time(member_text(record, name), now);
}

struct Column {
  std::string_view name;
  std::string_view heading;
  std::string (*text)(const object& record, base::UtcTime now);
};

constexpr std::array columns_there_are = {
    Column{"id", "ID", [](const object& record, base::UtcTime) { return member_text(record, "id"); }},
    Column{"state", "STATE", [](const object& record, base::UtcTime) { return member_text(record, "state"); }},
    Column{"agent", "AGENT", [](const object& record, base::UtcTime) { return member_text(record, "agent"); }},
    Column{"group", "GROUP", [](const object& record, base::UtcTime) { return anywhere(record, "group"); }},
    Column{"worker", "WORKER", [](const object& record, base::UtcTime) { return member_text(record, "worker"); }},
    Column{"priority", "PRIORITY", [](const object& record, base::UtcTime) { return member_text(record, "priority"); }},
    Column{"labels", "LABELS", [](const object& record, base::UtcTime) { return joined_members(record, "labels"); }},
    Column{"created", "CREATED",
           [](const object& record, base::UtcTime now) { return when(record, "createdAt", now); }},
    Column{"started", "STARTED",
           [](const object& record, base::UtcTime now) { return when(record, "startedAt", now); }},
    Column{"ended", "ENDED", [](const object& record, base::UtcTime now) { return when(record, "completedAt", now); }},
    Column{"ran", "RAN", [](const object& record, base::UtcTime now) { return run_time_of(record, now); }},
    Column{"attempts", "ATTEMPTS", [](const object& record, base::UtcTime) { return member_text(record, "attempts"); }},
    Column{"pid", "PID", [](const object& record, base::UtcTime) { return member_text(record, "pid"); }},
    Column{"exit", "EXIT",
           [](const object& record, base::UtcTime) {
             const std::string signal = member_text(record, "signal");
             return signal.empty() ? member_text(record, "exitCode") : signal;
           }},
    Column{"key", "KEY", [](const object& record, base::UtcTime) { return anywhere(record, "key"); }},
    Column{"folder", "FOLDER", [](const object& record, base::UtcTime) { return anywhere(record, "cwd"); }},
    Column{"after", "AFTER", [](const object& record, base::UtcTime) { return joined_members(record, "after"); }},
    Column{"error", "ERROR", [](const object& record, base::UtcTime) { return error_of(record); }},
    Column{"prompt", "PROMPT",
           [](const object& record, base::UtcTime) { return one_line(member_text(record, "prompt")); }},
    Column{"output", "OUTPUT", [](const object&, base::UtcTime) { return std::string(); }},
};

const Column* find_column(std::string_view name) {
  const auto* const found = std::ranges::find(columns_there_are, name, &Column::name);
  return found == columns_there_are.end() ? nullptr : found;
}

std::string unknown_column(std::string_view name) {
  std::vector<std::string_view> names;
  std::string known;
  for (const Column& column : columns_there_are) {
    names.push_back(column.name);
    known.append(known.empty() ? "" : ", ").append(column.name);
  }
  const std::string_view meant = near_miss(name, names);
  return "--columns: there is no column '" + std::string(name) + "'" +
         (meant.empty() ? "" : ", perhaps '" + std::string(meant) + "' is meant") + "; there are " + known;
}

// All others are in `default`.
bool is_in_a_group(const object& record) {
  const std::string group = anywhere(record, "group");
  return !group.empty() && group != "default";
}

bool is_running(const object& record) { return member_text(record, "state") == "running"; }

Table::Cell cell_of(const Column& column, const object& record, base::UtcTime now, const LatestLine& latest_line) {
  if (column.name == "state") return state_cell(record);
  if (column.name == "error") return {error_of(record), Table::Paint::fault};
  if (column.name != "output") return {column.text(record, now)};
  return {is_running(record) ? latest_line(member_text(record, "id")) : "", Table::Paint::faint};
}

}  // namespace

tl::expected<TaskColumns, std::string> parse_columns(std::string_view list) {
  TaskColumns columns;
  for (;;) {
    const std::string_view name = list.substr(0, list.find(','));
    if (find_column(name) == nullptr) return tl::unexpected(unknown_column(name));
    columns.emplace_back(name);
    if (name.size() == list.size()) return columns;
    list.remove_prefix(name.size() + 1);
  }
}

TaskColumns usual_columns(const array& records, std::optional<std::size_t> width) {
  const auto any = [&](const auto& of_record) {
    return std::ranges::any_of(records, [&](const value& record) { return of_record(record.as_object()); });
  };
  const std::size_t room = width.value_or(0);
  TaskColumns columns{"id", "state", "agent"};
  if (room >= room_for_more && any([](const object& record) { return !member_text(record, "worker").empty(); })) {
    columns.emplace_back("worker");
  }
  if (room >= room_for_more && any(is_in_a_group)) columns.emplace_back("group");
  if (room >= room_for_more && any([](const object& record) { return member_text(record, "priority") != "0"; })) {
    columns.emplace_back("priority");
  }
  if (room >= room_for_more && any([](const object& record) { return !joined_members(record, "labels").empty(); })) {
    columns.emplace_back("labels");
  }
  columns.insert(columns.end(), {"created", "ran"});
  if (room >= room_for_reasons && any([](const object& record) { return !error_of(record).empty(); })) {
    columns.emplace_back("error");
  }
  columns.emplace_back("prompt");
  if (room >= room_for_output && any(is_running)) columns.emplace_back("output");
  return columns;
}

Table task_table(const array& records, const TaskColumns& columns, base::UtcTime now, const LatestLine& latest_line) {
  std::vector<std::string> headings;
  for (const std::string& name : columns) headings.emplace_back(find_column(name)->heading);
  Table table(std::move(headings));
  const bool prompt_shares = columns.back() == "output";
  for (const value& record : records) {
    std::vector<Table::Cell> row;
    for (const std::string& name : columns) {
      row.push_back(cell_of(*find_column(name), record.as_object(), now, latest_line));
      if (name == "prompt" && prompt_shares) row.back().text = cut_to_width(row.back().text, prompt_beside_output);
    }
    table.add(std::move(row));
  }
  return table;
}

}  // namespace duet::app
