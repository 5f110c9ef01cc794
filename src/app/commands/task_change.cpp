#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/task_end.h"
#include "app/commands/commands.h"
#include "app/commands/record_printer.h"
#include "app/view/display_text.h"
#include "app/view/local_time.h"
#include "app/view/task_view.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::array;
using boost::json::object;

std::string counted(const std::string& number, const std::string& what) {
  return number + " " + what + (number == "1" ? "" : "s");
}

// One that is refused does not keep the others from it.
int change_each(const CommandLine& line, const char* method,
                const std::function<std::string(const std::string& id, const object& result)>& told) {
  DaemonClient daemon(line);
  int code = 0;
  for (const std::string& id : line.arguments) {
    const peer::Outcome outcome = daemon.ask(method, rpc::to_text(object{{"taskId", id}}), daemon.patience());
    if (outcome.cause == peer::Outcome::Cause::answered) {
      const object result = rpc::parse_value(outcome.result).as_object();
      print_text((line.flag("json") ? outcome.result : told(id, result)) + '\n');
      continue;
    }
    const Failure failure = DaemonClient::failure_of(method, outcome);
    if (outcome.cause != peer::Outcome::Cause::refused) throw failure;
    print_aside(std::string(line.program) + ": " + failure.what() + '\n');
    code = failure.code();
  }
  return code;
}

bool has_changed(const object& result) { return member_text(result, "changed") == "true"; }

const array& array_in(const object& result, std::string_view name) {
  static const array none;
  const boost::json::value* const found = result.if_contains(name);
  return found != nullptr && found->is_array() ? found->get_array() : none;
}

std::string explanation_page(const object& explanation, const TextStyle& style) {
  const base::UtcTime now = base::system_clock().utc();
  const auto readable = [now](const object& from, std::string_view name) {
    return with_local_times(one_line(member_text(from, name)), now);
  };
  const array& reasons = array_in(explanation, "reasons");
  const std::string head =
      style.heading(member_text(explanation, "taskId")) + " is " + style.name(member_text(explanation, "state"));
  if (reasons.empty()) return head + ": " + readable(explanation, "text") + '\n';
  std::string out = head + '\n';
  for (const boost::json::value& entry : reasons) {
    const object& reason = entry.as_object();
    out += "  " + style.warning(readable(reason, "text")) + '\n';
    const std::string change = readable(reason, "change");
    if (!change.empty()) out += "    " + style.faint(change) + '\n';
  }
  return out;
}

// Where the output of the attempts so far ends, and that of the next one begins.
std::uint64_t end_of_output(DaemonClient& daemon, const std::string& id) {
  constexpr std::int64_t behind_every_end = (std::int64_t{1} << 53) - 1;
  const object params{{"taskId", id}, {"offset", behind_every_end}, {"limit", 1}};
  return daemon.call("task.output", params).at("next").to_number<std::uint64_t>();
}

}  // namespace

int run_task_hold(const CommandLine& line) {
  return change_each(line, "task.hold", [](const std::string& id, const object& result) {
    return id + (has_changed(result) ? " is held" : " is held already");
  });
}

int run_task_release(const CommandLine& line) {
  return change_each(line, "task.release", [](const std::string& id, const object& result) {
    return id + (has_changed(result) ? " is released" : " was not held");
  });
}

int run_task_restart(const CommandLine& line) {
  const RecordPrinter checked(line);
  DaemonClient daemon(line);
  const std::string& id = line.arguments.front();
  object params{{"taskId", id}};
  if (!line.flag("in-place")) return answer_with(daemon, line, daemon.call_raw("task.restart", rpc::to_text(params)));
  const std::uint64_t from = line.flag("follow") ? end_of_output(daemon, id) : 0;
  params["inPlace"] = true;
  return answer_with(daemon, line, daemon.call_raw("task.restart", rpc::to_text(params)), from);
}

int run_task_remove(const CommandLine& line) {
  DaemonClient daemon(line);
  array ids;
  for (const std::string& id : line.arguments) ids.emplace_back(id);
  const std::string answer = daemon.call_raw("task.remove", rpc::to_text(object{{"taskIds", std::move(ids)}}));
  const object result = rpc::parse_value(answer).as_object();
  const array& kept = array_in(result, "kept");
  const int code = kept.empty() ? 0 : exit_code::failed;
  if (line.flag("json")) return print_text(answer + '\n'), code;
  for (const boost::json::value& id : array_in(result, "removed"))
    print_text(std::string(id.as_string()) + " removed\n");
  for (const boost::json::value& entry : kept) {
    const object& task = entry.as_object();
    print_aside(std::string(line.program) + ": " + one_line(member_text(task, "taskId")) +
                " stays: " + one_line(member_text(task, "text")) + '\n');
  }
  return code;
}

int run_task_clean(const CommandLine& line) {
  object params;
  if (const auto state = line.text("state")) params["state"] = *state;
  if (const auto older = line.duration("older")) {
    params["olderSeconds"] = std::chrono::duration<double>(*older).count();
  }
  DaemonClient daemon(line);
  const std::string answer = daemon.call_raw("task.clean", rpc::to_text(params));
  if (line.flag("json")) return print_text(answer + '\n');
  const object result = rpc::parse_value(answer).as_object();
  const std::string kept = member_text(result, "kept");
  return print_text(counted(member_text(result, "removed"), "task") + " removed" +
                    (kept == "0" || kept.empty() ? "" : ", " + counted(kept, "task") + " kept that others need") +
                    '\n');
}

int run_task_explain(const CommandLine& line) {
  DaemonClient daemon(line);
  const std::string answer = daemon.call_raw("task.explain", rpc::to_text(object{{"taskId", line.arguments.front()}}));
  if (line.flag("json")) return print_text(answer + '\n');
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  return print_text(explanation_page(rpc::parse_value(answer).as_object(), style));
}

}  // namespace duet::app
