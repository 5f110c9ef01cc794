#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/far_place.h"
#include "app/client/interrupt_note.h"
#include "app/client/line_prefixer.h"
#include "app/client/reader_watch.h"
#include "app/client/steady_calls.h"
#include "app/client/task_end.h"
#include "app/client/task_follower.h"
#include "app/client/wait_progress.h"
#include "app/commands/commands.h"
#include "app/commands/record_printer.h"
#include "app/methods/task_results.h"
#include "app/view/display_text.h"
#include "app/view/task_view.h"
#include "app/view/text_style.h"
#include "app/words/shell_word.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;

std::string params_of(const std::string& id) { return rpc::to_text(object{{"taskId", id}}); }

std::string joined_ids(const std::vector<std::string>& ids) {
  constexpr std::size_t most_named = 20;
  std::string out;
  for (std::size_t i = 0; i < std::min(ids.size(), most_named); ++i) out += (i == 0 ? "" : " ") + ids[i];
  return out + (ids.size() > most_named ? " ..." : "");
}

// Where the daemon is, as the command line says it.
std::string place_options(const CommandLine& line) {
  std::string out;
  for (const std::string_view name : place_option_names) {
    if (const auto value = line.text(name)) out += " --" + std::string(name) + " " + shell_word(*value);
  }
  return out;
}

// What ^C leaves behind, and how to come back to it: on one line, whatever is in it.
std::string goes_on_note(const CommandLine& line, const std::vector<std::string>& ids, const std::string& again) {
  const std::string program(line.program);
  const std::string place = place_options(line);
  const std::string all = joined_ids(ids);
  const std::string which = ids.size() == 1 ? ids.front() + " goes on" : "the tasks go on";
  return one_line(program + ": " + which + "; '" + program + " task " + again + " " + all + place + "' comes back, '" +
                  program + " task cancel " + all + place + "' ends " + (ids.size() == 1 ? "it" : "them"));
}

int first_code(const std::vector<object>& records, const CommandLine& line) {
  int code = 0;
  for (const object& record : records) {
    const int own = end_with(record, line);
    if (code == 0) code = own;
  }
  return code;
}

std::vector<std::string> without_repeats(const std::vector<std::string>& ids) {
  std::vector<std::string> out;
  for (const std::string& id : ids) {
    if (std::ranges::find(out, id) == out.end()) out.push_back(id);
  }
  return out;
}

LinePrefixer prefixer(const CommandLine& line, const std::vector<std::string>& ids) {
  return {ids, TextStyle(colour_wanted(STDOUT_FILENO, line.no_color)), print_text};
}

// The output of one task is printed as it is, that of several line by line.
TaskFollower::Print printing(LinePrefixer& lines, bool several) {
  if (!several) return [](const std::string& /*id*/, std::string_view bytes) { print_text(bytes); };
  return [&lines](const std::string& id, std::string_view bytes) { lines.take(id, bytes); };
}

// A last line without its end is printed however the reading ends.
void finishing(LinePrefixer& lines, const std::function<void()>& read) {
  try {
    read();
  } catch (const Failure&) {
    lines.finish();
    throw;
  }
  lines.finish();
}

// Empty: both, as of a task that was just submitted.
std::string stream_of(const CommandLine& line) {
  if (find_option(line.command, "stdout") == nullptr) return {};
  if (line.flag("stdout") == line.flag("stderr")) return {};
  return line.flag("stdout") ? "stdout" : "stderr";
}

// Empty: all of it.
std::optional<std::uint64_t> tail_of(const CommandLine& line) {
  return find_option(line.command, "tail") == nullptr ? std::nullopt : line.bytes("tail");
}

int follow_tasks(DaemonClient& daemon, const CommandLine& line, const std::vector<std::string>& ids,
                 std::uint64_t from = 0) {
  LinePrefixer lines = prefixer(line, ids);
  TaskFollower follower(daemon, ids, printing(lines, ids.size() > 1),
                        {.stream = stream_of(line), .from = from, .tail = tail_of(line)});
  const ReaderWatch reader(daemon.client().loop());
  const InterruptNote note(goes_on_note(line, ids, "output -f"), &lines);
  std::vector<object> records;
  finishing(lines, [&] { records = follower.follow(); });
  return first_code(records, line);
}

void print_outputs(DaemonClient& daemon, const CommandLine& line, const std::vector<std::string>& ids) {
  LinePrefixer lines = prefixer(line, ids);
  for (const std::string& id : ids) {
    TaskFollower follower(daemon, {id}, printing(lines, ids.size() > 1),
                          {.stream = stream_of(line), .tail = tail_of(line)});
    finishing(lines, [&] { follower.print_output(); });
  }
}

// Others may remove tasks that have ended while we wait for the rest: then what was told of the end has to do.
std::string end_of(SteadyCalls& calls, const WaitProgress& progress, const std::string& id) {
  if (const std::optional<std::string> record = await_end(calls, id)) return *record;
  const object* const told = progress.find_ended(id);
  if (told == nullptr) throw Failure(id + " was removed before it was known how it ended");
  return rpc::to_text(*told);
}

}  // namespace

void print_aside(std::string_view text) {
  const std::string lines = harmless_lines(text);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, lines.data(), lines.size());
}

int end_with(const object& record, const CommandLine& line) {
  const bool succeeded = member_text(record, "state") == "completed";
  const std::string outcome = member_text(record, "id") + " " + one_line(outcome_of(record));
  if (!succeeded) print_aside(std::string(line.program) + ": " + outcome + '\n');
  return exit_code_of(record);
}

int follow_new(DaemonClient& daemon, const CommandLine& line, const std::string& id, std::uint64_t from) {
  print_aside(id + '\n');
  return follow_tasks(daemon, line, {id}, from);
}

int wait_for(DaemonClient& daemon, const CommandLine& line, const std::vector<std::string>& ids) {
  const RecordPrinter printer(line);
  SteadyCalls calls(daemon);
  WaitProgress progress(daemon, STDERR_FILENO);
  std::map<std::string, std::string> ended;
  for (const std::string& id : ids) {  // a wrong id is told at once
    std::optional<std::string> record;
    progress.expect(id);
    while (!(record = calls.ask("task.get", params_of(id), daemon.patience()))) calls.reconnect();
    const object task = rpc::parse_value(*record).as_object();
    progress.add(task);
    if (has_ended(task)) ended.emplace(id, *record);
  }
  const InterruptNote note(goes_on_note(line, ids, "wait"));
  int code = 0;
  for (const std::string& id : ids) {
    progress.show();
    const auto known = ended.find(id);
    const std::string result = known != ended.end() ? known->second : end_of(calls, progress, id);
    const object record = rpc::parse_value(result).as_object();
    progress.hide();
    if (printer.is_for_people()) {
      print_text(id + " " + one_line(outcome_of(record)) + '\n');
    } else {
      printer.print(result);
    }
    if (code == 0) code = exit_code_of(record);
  }
  return code;
}

int run_task_get(const CommandLine& line) {
  const RecordPrinter printer(line);
  DaemonClient daemon(line);
  const std::string result = daemon.call_raw("task.get", params_of(line.arguments.front()));
  if (!printer.is_for_people()) return printer.print(result), 0;
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  return print_text(task_page(rpc::parse_value(result).as_object(), style, base::system_clock().utc()));
}

int run_task_stats(const CommandLine& line) {
  const RecordPrinter printer(line, member_names<TaskCounts>());
  DaemonClient daemon(line);
  const std::string result = daemon.call_raw("task.stats");
  if (!printer.is_for_people()) return printer.print(result), 0;
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  const boost::json::value stats = rpc::parse_value(result);
  std::string out;
  for (const auto& member : stats.as_object()) {
    const std::string name(member.key());
    out += style.name(name) + std::string(name.size() < 12 ? 12 - name.size() : 1, ' ') + rpc::to_text(member.value()) +
           '\n';
  }
  return print_text(out);
}

int run_task_wait(const CommandLine& line) {
  const RecordPrinter checked(line);
  DaemonClient daemon(line);
  return wait_for(daemon, line, line.arguments);
}

int run_task_output(const CommandLine& line) {
  if (line.flag("follow") && line.flag("json")) {
    throw Failure(
        "--follow prints the output itself: it does not go with --json; 'task wait --json' gives the records");
  }
  const std::vector<std::string> ids = without_repeats(line.arguments);
  DaemonClient daemon(line);
  if (line.flag("follow")) return follow_tasks(daemon, line, ids);
  if (line.flag("json")) {
    for (const std::string& id : ids) {
      object params{{"taskId", id}};
      if (const std::string stream = stream_of(line); !stream.empty()) params["stream"] = stream;
      if (const auto tail = tail_of(line)) params["fromEnd"] = *tail;
      print_text(daemon.call_raw("task.output", rpc::to_text(params)) + '\n');
    }
    return 0;
  }
  print_outputs(daemon, line, ids);
  return 0;
}

}  // namespace duet::app
