#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/task_end.h"
#include "app/client/task_follower.h"
#include "app/commands/commands.h"
#include "app/view/display_text.h"
#include "app/view/task_view.h"
#include "app/view/text_style.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;

std::string params_of(const std::string& id) { return rpc::to_text(object{{"taskId", id}}); }

std::string line_of(const CommandLine& line, const Failure& failure) {
  return std::string(line.program) + ": " + failure.what() + '\n';
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

std::string page_of(const object& record, const TextStyle& style, base::UtcTime now) {
  constexpr std::size_t name_width = 10;
  std::string out;
  const auto row = [&](std::string_view name, const std::string& text) {
    if (text.empty()) return;
    out += style.name(name) + std::string(name_width - name.size(), ' ') + one_line(text) + '\n';
  };
  const auto time = [&](std::string_view name, std::string_view member) {
    const std::string text = member_text(record, member);
    if (!text.empty()) row(name, text + " (" + relative_time(text, now) + ")");
  };
  row("id", member_text(record, "id"));
  row("state", outcome_of(record));
  row("agent", member_text(record, "agent"));
  row("priority", member_text(record, "priority"));
  time("created", "createdAt");
  time("started", "startedAt");
  time("ended", "completedAt");
  row("ran", run_time_of(record, now));
  row("pid", member_text(record, "pid"));
  row("exit code", member_text(record, "exitCode"));
  row("signal", member_text(record, "signal"));
  row("attempts", member_text(record, "attempts"));
  out += style.name("prompt") + '\n' + last_lines(member_text(record, "prompt"), 20);
  const std::string result = member_text(record, "result");
  return result.empty() ? out : out + style.name("result") + '\n' + last_lines(result, 10);
}

}  // namespace

void print_aside(std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

int end_with(const object& record, const CommandLine& line) {
  const int code = exit_code_of(record);
  const bool succeeded = member_text(record, "state") == "completed";
  if (!succeeded) print_aside(line_of(line, Failure(member_text(record, "id") + " " + one_line(outcome_of(record)))));
  return code;
}

int run_task_get(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string result = daemon.call_raw("task.get", params_of(line.arguments.front()));
  if (line.flag("json")) return print_text(result + '\n');
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  return print_text(page_of(rpc::parse_value(result).as_object(), style, base::system_clock().utc()));
}

// One that cannot be cancelled does not keep the others from it.
int run_task_cancel(const CommandLine& line) {
  DaemonClient daemon(line);
  int code = 0;
  for (const std::string& id : line.arguments) {
    const peer::Outcome outcome = daemon.ask("task.cancel", params_of(id), daemon.patience());
    if (outcome.cause == peer::Outcome::Cause::answered) {
      print_text(line.flag("json") ? outcome.result + '\n' : id + " cancelled\n");
      continue;
    }
    const Failure failure = DaemonClient::failure_of("task.cancel", outcome);
    if (outcome.cause != peer::Outcome::Cause::refused) throw failure;
    print_aside(line_of(line, failure));
    code = failure.code();
  }
  return code;
}

int run_task_stats(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string result = daemon.call_raw("task.stats");
  if (line.flag("json")) return print_text(result + '\n');
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
  DaemonClient daemon(line);
  for (const std::string& id : line.arguments)
    daemon.call_raw("task.get", params_of(id));  // a wrong id is told at once
  int code = 0;
  for (const std::string& id : line.arguments) {
    const std::string result = await_end(daemon, id);
    const object record = rpc::parse_value(result).as_object();
    print_text(line.flag("json") ? result + '\n' : id + " " + one_line(outcome_of(record)) + '\n');
    if (code == 0) code = exit_code_of(record);
  }
  return code;
}

int run_task_output(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string& id = line.arguments.front();
  if (line.flag("json") && !line.flag("follow"))
    return print_text(daemon.call_raw("task.output", params_of(id)) + '\n');
  TaskFollower follower(daemon, id, print_text);
  if (line.flag("follow")) return end_with(follower.follow(), line);
  follower.print_output();
  return 0;
}

}  // namespace duet::app
