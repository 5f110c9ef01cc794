#include <unistd.h>

#include <iostream>
#include <optional>
#include <string>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/task_end.h"
#include "app/client/text_editor.h"
#include "app/commands/commands.h"
#include "app/commands/queue_params.h"
#include "app/commands/record_printer.h"
#include "app/project/failure.h"
#include "app/view/edit_form.h"
#include "app/view/task_view.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;

constexpr std::string_view no_dependency = "none";

// Of those given by --after; `none` takes all away.
boost::json::array dependencies(const std::vector<std::string>& given) {
  boost::json::array ids;
  for (const std::string& id : given) {
    if (id != no_dependency) ids.emplace_back(id);
  }
  if (ids.size() < given.size() && !ids.empty()) throw Failure("--after none takes all away: it goes with no other");
  return ids;
}

// --label NAME=VALUE adds to what is there; NAME= takes it away.
object changed_labels(const object& record, const std::vector<std::string>& given) {
  const boost::json::value* const before = record.if_contains("labels");
  object labels = before != nullptr && before->is_object() ? before->get_object() : object();
  for (const std::string& pair : given) {
    const std::size_t equals = pair.find('=');
    const std::string name = pair.substr(0, equals);
    if (equals + 1 == pair.size()) {
      labels.erase(name);
    } else {
      labels[name] = pair.substr(equals + 1);
    }
  }
  return labels;
}

std::string prompt_from_stdin() {
  std::string text = read_input();
  if (!rpc::is_utf8(text)) throw Failure("the text is not UTF-8");
  return text;
}

object params_of_flags(const CommandLine& line, const object& record) {
  object params;
  if (const auto prompt = line.text("prompt")) params["prompt"] = *prompt == "-" ? prompt_from_stdin() : *prompt;
  if (const auto priority = line.number("priority")) params["priority"] = *priority;
  if (const auto group = line.text("group")) params["group"] = *group;
  add_start_time(params, line);
  if (const auto after = line.texts("after"); !after.empty()) params["after"] = dependencies(after);
  if (const auto labels = line.texts("label"); !labels.empty()) params["labels"] = changed_labels(record, labels);
  return params;
}

bool wants_another_try(const std::string& fault) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return false;
  print_aside(fault + "\nEdit again? [Y/n] ");
  std::string answer;
  return std::getline(std::cin, answer) && (answer.empty() || answer.front() == 'y' || answer.front() == 'Y');
}

/// Lets the user change the task's form until it is taken or given up.
class EditorSession {
 public:
  EditorSession(DaemonClient& daemon, const object& record)
      : daemon_(daemon), id_(member_text(record, "id")), form_(edit_form(record)), editor_("duet-" + id_, form_) {}

  // The answer; none: nothing was changed.
  std::optional<std::string> run() {
    for (;;) {
      const tl::expected<object, std::string> params = edit_params(form_, edited(), base::system_clock().utc());
      if (params && params->empty()) return std::nullopt;
      std::string fault = params ? std::string() : params.error();
      if (params) {
        std::optional<std::string> result = submit(*params, fault);
        if (result) return result;
      }
      if (!wants_another_try(fault)) throw Failure(fault + "; the text is kept in " + editor_.keep());
    }
  }

 private:
  // Nobody reads the events meanwhile.
  std::string edited() {
    daemon_.client().disconnect();
    return editor_.edit();
  }

  std::optional<std::string> submit(object params, std::string& fault) {
    params["taskId"] = id_;
    try {
      return daemon_.call_raw("task.edit", rpc::to_text(params));
    } catch (const Failure& failure) {
      fault = failure.what();
      return std::nullopt;
    }
  }

  DaemonClient& daemon_;
  std::string id_;
  std::string form_;
  TextEditor editor_;
};

}  // namespace

int run_task_edit(const CommandLine& line) {
  const RecordPrinter printer(line);
  DaemonClient daemon(line);
  const std::string& id = line.arguments.front();
  const std::string before = daemon.call_raw("task.get", rpc::to_text(object{{"taskId", id}}));
  const object record = rpc::parse_value(before).as_object();
  const std::string state = member_text(record, "state");
  if (state != "queued") throw Failure(id + " is " + state + ": only a queued task can be edited");
  object params = params_of_flags(line, record);
  std::optional<std::string> result;
  if (params.empty()) {
    result = EditorSession(daemon, record).run();
  } else {
    params["taskId"] = id;
    result = daemon.call_raw("task.edit", rpc::to_text(params));
  }
  if (printer.is_for_people()) return print_text(id + (result ? " changed\n" : " is unchanged\n"));
  printer.print(result.value_or(before));
  return 0;
}

}  // namespace duet::app
