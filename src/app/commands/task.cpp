#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/reader_watch.h"
#include "app/client/steady_calls.h"
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
  return print_text(task_page(rpc::parse_value(result).as_object(), style, base::system_clock().utc()));
}

// One that cannot be cancelled does not keep the others from it. Most tasks end at once when they are told to: they are
// given a moment, so that the word for them is the last one.
int run_task_cancel(const CommandLine& line) {
  DaemonClient daemon(line);
  int code = 0;
  std::vector<std::string> told;
  for (const std::string& id : line.arguments) {
    const peer::Outcome outcome = daemon.ask("task.cancel", params_of(id), daemon.patience());
    if (outcome.cause == peer::Outcome::Cause::answered) {
      if (line.flag("json")) print_text(outcome.result + '\n');
      told.push_back(id);
      continue;
    }
    const Failure failure = DaemonClient::failure_of("task.cancel", outcome);
    if (outcome.cause != peer::Outcome::Cause::refused) throw failure;
    print_aside(line_of(line, failure));
    code = failure.code();
  }
  if (line.flag("json")) return code;
  // Not longer than the answer may take.
  std::chrono::duration<double> moment = std::min<std::chrono::duration<double>>(
      std::chrono::seconds(1), std::chrono::duration<double>(daemon.patience()) / 2);
  const auto deadline = std::chrono::steady_clock::now() + moment;
  for (const std::string& id : told) {
    const object params{{"taskId", id}, {"timeoutSeconds", std::max(moment.count(), 0.0)}};
    print_text(cancel_line(rpc::parse_value(daemon.call_raw("task.wait", rpc::to_text(params))).as_object()) + '\n');
    moment = deadline - std::chrono::steady_clock::now();
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
  SteadyCalls calls(daemon);
  for (const std::string& id : line.arguments) {  // a wrong id is told at once
    while (!calls.ask("task.get", params_of(id), daemon.patience())) calls.reconnect();
  }
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
  if (line.flag("follow")) {
    const ReaderWatch reader(daemon.client().loop());
    return end_with(follower.follow(), line);
  }
  follower.print_output();
  return 0;
}

}  // namespace duet::app
