#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/live_screen.h"
#include "app/client/steady_calls.h"
#include "app/commands/commands.h"
#include "app/commands/queue_params.h"
#include "app/commands/record_printer.h"
#include "app/view/display_text.h"
#include "app/view/local_time.h"
#include "app/view/table.h"
#include "app/view/task_columns.h"
#include "app/view/task_view.h"
#include "app/words/moment.h"
#include "duet/base/base64.h"
#include "duet/base/utc_text.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::array;
using boost::json::object;
using namespace std::chrono_literals;

constexpr std::uint64_t behind_every_end = (std::uint64_t{1} << 53U) - 1;
constexpr std::uint64_t longest_line = 2048;

object output_piece(DaemonClient& daemon, const std::string& id, std::uint64_t offset, std::uint64_t limit) {
  if (!daemon.is_connected()) return {};  // whoever watches finds the next daemon
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
  std::string text = base::from_base64(piece.at("data").as_string()).value_or("");
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return text.substr(text.find_last_of("\r\n") + 1);
}

std::string time_since(const std::string& text) {
  const std::optional<Moment> moment = parse_past(text, base::system_clock().utc());
  if (!moment) throw Failure("--since is '" + text + "': it is " + std::string(past_forms));
  return base::utc_text(*moment);
}

object list_params(const CommandLine& line) {
  object params;
  if (const auto state = line.text("state")) params["state"] = *state;
  if (const auto limit = line.number("limit")) params["limit"] = *limit;
  for (const char* const name : {"group", "agent", "before", "sort"}) {
    if (const auto value = line.text(name)) params[name] = *value;
  }
  if (object labels = labels_given(line); !labels.empty()) params["labels"] = std::move(labels);
  if (const auto since = line.text("since")) params["since"] = time_since(*since);
  return params;
}

std::optional<TaskColumns> wanted_columns(const CommandLine& line) {
  const std::optional<std::string> list = line.text("columns");
  if (!list) return std::nullopt;
  const tl::expected<TaskColumns, std::string> columns = parse_columns(*list);
  if (!columns) throw Failure(columns.error());
  return *columns;
}

bool is_running_record(const boost::json::value& record) {
  return member_text(record.as_object(), "state") == "running";
}

/// A list that is painted again when something has happened, and while a task runs every second.
class WatchedList {
 public:
  explicit WatchedList(const CommandLine& line)
      : params_(list_params(line)),
        columns_(wanted_columns(line)),
        style_(colour_wanted(STDOUT_FILENO, line.no_color)),
        daemon_(line),
        calls_(daemon_) {
    daemon_.client().on_any([this](std::string_view event, std::string_view /*params*/) {
      news_ = true;
      if (event == "event.overflow") overflowed_ = true;
    });
    daemon_.connect();
  }

  // Until the time of --timeout is over, if any was given.
  void watch() {
    LiveScreen screen(daemon_.client().loop());
    while (calls_.time_left() > base::Duration::zero()) {
      news_ = false;
      const std::optional<std::string> frame = next_frame();
      if (frame) screen.paint(*frame);
      if (frame && wait_for_news(screen)) continue;
      screen.paint(daemon_.lost_text());
      calls_.reconnect();
    }
  }

 private:
  static constexpr auto between_frames = 250ms;

  // None: the daemon has gone.
  std::optional<std::string> next_frame() {
    if (overflowed_ && !calls_.ask("events.subscribe", "{}", daemon_.patience())) return std::nullopt;
    overflowed_ = false;
    const LiveScreen::Size size = LiveScreen::size();
    object params = params_;
    const auto room = static_cast<std::int64_t>(std::max<std::size_t>(size.rows, 5) - 3);
    const boost::json::value* const limit = params.if_contains("limit");
    params["limit"] = limit == nullptr ? room : std::min(room, limit->get_int64());
    const auto stats = calls_.ask("task.stats", {}, daemon_.patience());
    const auto list = stats ? calls_.ask("task.list", rpc::to_text(params), daemon_.patience()) : std::nullopt;
    if (!list) return std::nullopt;
    return frame_of(rpc::parse_value(*stats).as_object(), rpc::parse_value(*list).as_array(), size.columns);
  }

  std::string frame_of(const object& stats, const array& records, std::size_t width) {
    const base::UtcTime now = base::system_clock().utc();
    has_running_ = std::ranges::any_of(records, is_running_record);
    std::string heading = clock_time(now, now);
    for (const char* const state : {"running", "queued", "completed", "failed", "cancelled"}) {
      heading += "  " + member_text(stats, state) + " " + state;
    }
    const Table table = task_table(records, columns_ ? *columns_ : usual_columns(records, width), now,
                                   [this](const std::string& id) { return last_line(daemon_, id); });
    return style_.heading(cut_to_width(heading, width)) + "\n\n" +
           (records.empty() ? "no tasks\n" : table.text(style_, width));
  }

  // False: the daemon has gone.
  bool wait_for_news(const LiveScreen& screen) {
    peer::Client& client = daemon_.client();
    client.wait_for([&] { return screen.needs_paint(); }, between_frames);
    const base::Duration rest = has_running_ ? base::Duration(1s - between_frames) : base::Duration(10s);
    client.wait_for([&] { return news_ || screen.needs_paint(); }, std::min(rest, calls_.time_left()));
    return daemon_.is_connected();
  }

  object params_;
  std::optional<TaskColumns> columns_;
  TextStyle style_;
  DaemonClient daemon_;
  SteadyCalls calls_;
  bool news_ = false;
  bool overflowed_ = false;
  bool has_running_ = false;
};

int watch_list(const CommandLine& line) {
  if (line.flag("json") || line.text("format"))
    throw Failure("--watch is for people: it goes with neither --json nor --format");
  if (isatty(STDOUT_FILENO) != 1)
    throw Failure("--watch paints a terminal, and stdout is none; 'events' tells what happens");
  WatchedList(line).watch();
  return 0;
}

}  // namespace

int run_task_list(const CommandLine& line) {
  if (line.flag("watch")) return watch_list(line);
  const RecordPrinter printer(line);
  const std::optional<TaskColumns> columns = wanted_columns(line);
  DaemonClient daemon(line);
  const std::string result = daemon.call_raw("task.list", rpc::to_text(list_params(line)));
  if (line.flag("json")) return print_text(result + '\n');
  const boost::json::value parsed = rpc::parse_value(result);
  const array& records = parsed.as_array();
  if (printer.has_format()) {
    for (const boost::json::value& record : records) printer.print_formatted(record.as_object());
    return 0;
  }
  if (records.empty()) return print_text("no tasks\n");
  const std::optional<std::size_t> width = terminal_width(STDOUT_FILENO);
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  const auto latest = [&daemon](const std::string& id) { return last_line(daemon, id); };
  const base::UtcTime now = base::system_clock().utc();
  return print_text(
      task_table(records, columns ? *columns : usual_columns(records, width), now, latest).text(style, width));
}

}  // namespace duet::app
