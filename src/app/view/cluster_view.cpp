#include "app/view/cluster_view.h"

#include <chrono>
#include <string_view>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "app/view/display_text.h"
#include "app/view/table.h"
#include "app/view/task_view.h"
#include "app/words/duration.h"

namespace duet::app {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;
using Text = std::string_view;

const value* member(const object& fields, Text name) {
  const value* const found = fields.if_contains(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

std::string text_or_dash(const object& fields, Text name) {
  std::string text = member_text(fields, name);
  return text.empty() ? "-" : text;
}

std::string joined(const array& texts) {
  std::string out;
  for (const value& text : texts) {
    if (text.is_string()) out += (out.empty() ? "" : ", ") + std::string(text.get_string());
  }
  return out;
}

std::optional<double> number(const object& fields, Text name) {
  const value* const found = member(fields, name);
  if (found == nullptr || !found->is_number()) return std::nullopt;
  return found->to_number<double>();
}

std::string readable_age(std::optional<double> milliseconds) {
  if (!milliseconds || *milliseconds < 0) return "-";
  return readable_duration(std::chrono::milliseconds(static_cast<std::int64_t>(*milliseconds)));
}

Table::Cell state_of(const object& worker) {
  const std::string state = text_or_dash(worker, "state");
  const bool is_bad = state == "silent" || state == "gone";
  return {state, state == "live" ? Table::Paint::good : is_bad ? Table::Paint::fault : Table::Paint::none};
}

Table worker_table(const array& workers, const std::string& own) {
  Table table({"NAME", "STATE", "RUNNING/SLOTS", "BEAT AGE", "VERSION", "LABELS"});
  for (const value& entry : workers) {
    if (!entry.is_object()) continue;
    const object& worker = entry.get_object();
    const std::string name = member_text(worker, "name");
    table.add({{name == own ? name + " (this one)" : name, Table::Paint::name},
               state_of(worker),
               {text_or_dash(worker, "running") + '/' + text_or_dash(worker, "slots")},
               {readable_age(number(worker, "beatAgeMs"))},
               {text_or_dash(worker, "version")},
               {joined(member_list(worker, "labels"))}});
  }
  return table;
}

// Who could take it, or what nobody has.
Table::Cell takers_of(const object& lane) {
  const std::string missing = member_text(lane, "waitingFor");
  if (!missing.empty()) return {missing, Table::Paint::fault};
  return {joined(member_list(lane, "workers"))};
}

Table lane_table(const array& lanes) {
  Table table({"AGENT", "GROUP", "NEEDS", "QUEUED", "RUNNING", "WORKERS"});
  for (const value& entry : lanes) {
    if (!entry.is_object()) continue;
    const object& lane = entry.get_object();
    table.add({{member_text(lane, "agent"), Table::Paint::name},
               {text_or_dash(lane, "group")},
               {joined(member_list(lane, "needs"))},
               {text_or_dash(lane, "queued")},
               {text_or_dash(lane, "running")},
               takers_of(lane)});
  }
  return table;
}

std::string yes_or_no(const object& fields, Text name) {
  const value* const found = member(fields, name);
  if (found == nullptr || !found->is_bool()) return "-";
  return found->get_bool() ? "yes" : "no";
}

std::string standbys_of(const object& database) {
  const std::string count = member_text(database, "synchronousStandbys");
  if (count.empty()) return "-";
  return count == "0" ? "0: a failover may lose the last moments" : count;
}

std::string round_trip_of(const object& database) {
  const std::string time = member_text(database, "roundTripMs");
  return time.empty() ? "-" : time + " ms";
}

std::string oldest_transaction_of(const object& database) {
  const value* const found = member(database, "oldestTransaction");
  if (found == nullptr || !found->is_object()) return "none";
  const object& oldest = found->get_object();
  const std::string application = member_text(oldest, "application");
  return readable_age(number(oldest, "ageMs")) + ", pid " + text_or_dash(oldest, "pid") +
         (application.empty() ? "" : " (" + application + ")");
}

std::string dead_rows_of(const object& database) {
  const std::string dead = member_text(database, "deadRows");
  return dead.empty() ? "-" : dead + ", beside " + text_or_dash(database, "liveRows") + " live ones";
}

std::string database_lines(const object& database, const TextStyle& style) {
  const std::pair<Text, std::string> lines[] = {
      {"primary", text_or_dash(database, "primary")},
      {"timeline", text_or_dash(database, "timeline")},
      {"schema version", text_or_dash(database, "schemaVersion")},
      {"round trip", round_trip_of(database)},
      {"wake-ups", text_or_dash(database, "wakeUps")},
      {"pooler", yes_or_no(database, "pooler")},
      {"synchronous standbys", standbys_of(database)},
      {"oldest transaction", oldest_transaction_of(database)},
      {"dead rows", dead_rows_of(database)},
      {"unnumbered events", text_or_dash(database, "unnumberedEvents")},
  };
  std::string out;
  constexpr std::size_t column = 22;
  for (const auto& [name, text] : lines) {
    out += std::string(name) + std::string(column - name.size(), ' ') + one_line(text) + '\n';
  }
  if (yes_or_no(database, "insecure") == "yes")
    out += style.warning("insecure: the server's certificate is not verified") + '\n';
  const std::string trouble = member_text(database, "trouble");
  return trouble.empty() ? out : out + style.fault("trouble: " + one_line(trouble)) + '\n';
}

}  // namespace

std::string cluster_page(const object& status, const TextStyle& style, std::optional<std::size_t> width) {
  std::string out = worker_table(member_list(status, "workers"), member_text(status, "worker")).text(style, width);
  const Table lanes = lane_table(member_list(status, "lanes"));
  out += lanes.empty() ? "\nnothing waits\n" : '\n' + lanes.text(style, width);
  const value* const database = member(status, "database");
  return out + '\n' +
         database_lines(database != nullptr && database->is_object() ? database->get_object() : object(), style);
}

}  // namespace duet::app
