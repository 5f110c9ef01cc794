#include <unistd.h>

#include <cstdlib>
#include <string>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/reader_watch.h"
#include "app/client/task_end.h"
#include "app/client/task_follower.h"
#include "app/commands/commands.h"
#include "app/view/task_view.h"
#include "app/words/blank.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;

std::string place_to_run() {
  std::string path = working_directory("change to another one, since the task would run there");
  if (!rpc::is_utf8(path))
    throw Failure("the name of the working directory is not UTF-8, and the task would run there");
  return path;
}

object submission(const CommandLine& line) {
  object params{{"prompt", joined_words(line)}, {"cwd", place_to_run()}};
  if (const char* path = std::getenv("PATH"); path != nullptr && rpc::is_utf8(path)) params["env"] = {{"PATH", path}};
  if (const auto agent = line.text("agent")) params["agent"] = *agent;
  if (const auto priority = line.number("priority")) params["priority"] = *priority;
  if (const auto key = line.text("key")) params["key"] = *key;
  if (const auto limit = line.duration("time-limit")) {
    params["timeoutSeconds"] = std::chrono::duration<double>(*limit).count();
  }
  boost::json::array after;
  for (const std::string& id : line.texts("after")) after.emplace_back(id);
  if (!after.empty()) params["after"] = std::move(after);
  return params;
}

}  // namespace

std::string joined_words(const CommandLine& line) {
  std::string out;
  if (line.arguments.size() == 1 && line.arguments.front() == "-") {
    out = read_input();
  } else {
    for (const std::string& word : line.arguments) out += (out.empty() ? "" : " ") + word;
  }
  if (!rpc::is_utf8(out)) throw Failure("the text is not UTF-8");
  if (is_blank(out)) throw Failure("the text is empty: say what the agent is to do");
  return out;
}

int run_task_submit(const CommandLine& line) {
  const object params = submission(line);
  DaemonClient daemon(line);
  const std::string result = daemon.call_raw("task.submit", rpc::to_text(params));
  const std::string id = member_text(rpc::parse_value(result).as_object(), "taskId");
  if (!line.flag("follow")) return print_text((line.flag("json") ? result : id) + '\n');
  if (line.flag("json")) {
    const std::string record = await_end(daemon, id);
    print_text(record + '\n');
    return exit_code_of(rpc::parse_value(record).as_object());
  }
  print_aside(id + '\n');
  const ReaderWatch reader(daemon.client().loop());
  return end_with(TaskFollower(daemon, id, print_text).follow(), line);
}

int run_chat_send(const CommandLine& line) {
  object params{{"message", joined_words(line)}};
  if (const auto priority = line.number("priority")) params["priority"] = *priority;
  DaemonClient daemon(line);
  const std::string result = daemon.call_raw("chat.send", rpc::to_text(params));
  const std::string id = member_text(rpc::parse_value(result).as_object(), "taskId");
  return print_text((line.flag("json") ? result : id) + '\n');
}

}  // namespace duet::app
