#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/commands/commands.h"
#include "app/view/display_text.h"
#include "app/view/table.h"
#include "app/view/task_view.h"
#include "app/words/base64.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::array;
using boost::json::object;

constexpr std::uint64_t behind_every_end = (std::uint64_t{1} << 53U) - 1;
constexpr std::size_t room_for_output = 100;  // columns of a terminal that has them left
constexpr std::size_t prompt_beside_output = 36;
constexpr std::uint64_t longest_line = 2048;

object output_piece(DaemonClient& daemon, const std::string& id, std::uint64_t offset, std::uint64_t limit) {
  const object params{{"taskId", id}, {"offset", offset}, {"limit", limit}, {"encoding", "base64"}};
  const peer::Outcome outcome = daemon.ask("task.output", rpc::to_text(params), daemon.patience());
  if (outcome.cause != peer::Outcome::Cause::answered) return {};  // it may have ended and been forgotten meanwhile
  return rpc::parse_value(outcome.result).as_object();
}

std::string last_line(DaemonClient& daemon, const std::string& id) {
  const object end = output_piece(daemon, id, behind_every_end, 1);
  if (end.empty()) return {};
  const auto total = end.at("next").to_number<std::uint64_t>();
  const object piece = output_piece(daemon, id, total - std::min(total, longest_line), longest_line);
  if (piece.empty()) return {};
  std::string text = from_base64(piece.at("data").as_string()).value_or("");
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text.substr(text.find_last_of("\r\n") + 1);
}

Table task_table(const array& records, DaemonClient& daemon, bool with_output) {
  const base::UtcTime now = base::system_clock().utc();
  std::vector<std::string> headings{"ID", "STATE", "AGENT", "CREATED", "RAN", "PROMPT"};
  if (with_output) headings.emplace_back("OUTPUT");
  Table table(std::move(headings));
  for (const boost::json::value& entry : records) {
    const object& record = entry.as_object();
    const std::string id = member_text(record, "id");
    const std::string prompt = one_line(member_text(record, "prompt"));
    std::vector<Table::Cell> row{{id},
                                 state_cell(record),
                                 {member_text(record, "agent")},
                                 {relative_time(member_text(record, "createdAt"), now)},
                                 {run_time_of(record, now)},
                                 {with_output ? cut_to_width(prompt, prompt_beside_output) : prompt}};
    const bool running = member_text(record, "state") == "running";
    if (with_output) row.push_back({running ? last_line(daemon, id) : "", Table::Paint::faint});
    table.add(std::move(row));
  }
  return table;
}

}  // namespace

int run_task_list(const CommandLine& line) {
  object params;
  if (const auto state = line.text("state")) params["state"] = *state;
  if (const auto limit = line.number("limit")) params["limit"] = *limit;
  DaemonClient daemon(line);
  const std::string result = daemon.call_raw("task.list", rpc::to_text(params));
  if (line.flag("json")) return print_text(result + '\n');
  const boost::json::value parsed = rpc::parse_value(result);
  const array& records = parsed.as_array();
  if (records.empty()) return print_text("no tasks\n");
  const std::optional<std::size_t> width = terminal_width(STDOUT_FILENO);
  const auto runs = [](const boost::json::value& record) {
    return member_text(record.as_object(), "state") == "running";
  };
  const bool with_output = width && *width >= room_for_output && std::ranges::any_of(records, runs);
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  return print_text(task_table(records, daemon, with_output).text(style, width));
}

}  // namespace duet::app
