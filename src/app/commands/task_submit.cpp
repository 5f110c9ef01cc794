#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/task_end.h"
#include "app/client/task_follower.h"
#include "app/commands/commands.h"
#include "app/commands/queue_params.h"
#include "app/commands/record_printer.h"
#include "app/commands/shared_submit.h"
#include "app/view/task_view.h"
#include "app/words/blank.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;

std::string checked_folder(std::string path) {
  if (rpc::is_utf8(path)) return path;
  throw Failure("the name of the folder is not UTF-8, and the task would run there: give another one with --cwd");
}

std::string given_folder(const std::string& given) {
  struct stat status {};
  if (stat(given.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) throw Failure("--cwd: " + given + " is no folder");
  std::error_code error;
  const std::string plain = std::filesystem::canonical(given, error).string();
  if (!error) return checked_folder(plain);
  return checked_folder(given.starts_with('/') ? given : working_directory() + '/' + given);  // a very long one
}

bool is_inside(const std::string& path, const std::string& folder) {
  return path == folder || folder == "/" || path.starts_with(folder + '/');
}

// --cwd, else the current folder if it is in the project; none: the project's own. Where the project is known by its
// socket only, nobody can say what is inside. Another machine has other folders.
std::optional<std::string> place_to_run(const CommandLine& line, const DaemonClient& daemon) {
  if (daemon.is_far()) return line.text("cwd");
  if (const auto given = line.text("cwd")) return given_folder(*given);
  std::string here = working_directory("change to another one, or say with --cwd where the task is to run");
  if (daemon.project() != nullptr && !is_inside(here, daemon.project()->root)) return std::nullopt;
  return checked_folder(std::move(here));
}

// The PATH of this shell means something on this machine only.
object environment_of(const CommandLine& line, const DaemonClient& daemon, bool runs_anywhere) {
  object env;
  const char* const path = daemon.is_far() || runs_anywhere ? nullptr : std::getenv("PATH");
  if (path != nullptr && rpc::is_utf8(path)) env["PATH"] = path;
  if (find_option(line.command, "env") == nullptr) return env;
  for (const std::string& pair : line.texts("env")) {
    const std::size_t equals = pair.find('=');
    env[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return env;
}

// What task.submit and chat.send have in common.
object common_params(const CommandLine& line, const DaemonClient& daemon, bool runs_anywhere) {
  object params;
  if (const auto folder = place_to_run(line, daemon)) params["cwd"] = *folder;
  if (object env = environment_of(line, daemon, runs_anywhere); !env.empty()) params["env"] = std::move(env);
  if (const auto agent = line.text("agent")) params["agent"] = *agent;
  if (const auto priority = line.number("priority")) params["priority"] = *priority;
  return params;
}

// `worker` is the daemon's name in a shared queue; empty: it shares none, and `here` is the only place there is.
object submission(const CommandLine& line, const DaemonClient& daemon, const std::string& worker) {
  const bool here = line.flag("here");
  object params = common_params(line, daemon, !worker.empty() && !here);
  if (const auto on_lost = line.text("on-lost")) params["onLost"] = *on_lost;
  boost::json::array needs;
  for (const std::string& label : line.texts("needs")) needs.emplace_back(label);
  if (!needs.empty()) params["needs"] = std::move(needs);
  if (here && !worker.empty()) params["here"] = true;
  params["prompt"] = joined_words(line);
  if (const auto key = line.text("key")) params["key"] = *key;
  if (const auto limit = line.duration("time-limit")) {
    params["timeoutSeconds"] = std::chrono::duration<double>(*limit).count();
  }
  if (const auto retries = line.number("retries")) params["retries"] = *retries;
  if (const auto group = line.text("group")) params["group"] = *group;
  add_start_time(params, line);
  if (object labels = labels_given(line); !labels.empty()) params["labels"] = std::move(labels);
  if (const auto memory = line.bytes("memory")) params["memory"] = *memory;
  if (const auto processes = line.number("processes")) params["processes"] = *processes;
  if (const auto cpu = line.decimal("cpu")) params["cpu"] = *cpu;
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

int answer_with(DaemonClient& daemon, const CommandLine& line, const std::string& result, std::uint64_t from) {
  const RecordPrinter printer(line);
  const std::string id = member_text(rpc::parse_value(result).as_object(), "taskId");
  if (line.flag("follow")) {
    return printer.is_for_people() ? follow_new(daemon, line, id, from) : wait_for(daemon, line, {id});
  }
  if (printer.is_for_people()) return print_text(id + '\n');
  const bool needs_record = printer.has_format();
  printer.print(needs_record ? daemon.call_raw("task.get", rpc::to_text(object{{"taskId", id}})) : result);
  return 0;
}

int run_task_submit(const CommandLine& line) {
  const RecordPrinter checked(line);  // before anything is submitted
  DaemonClient daemon(line);
  const std::string worker = shared_worker(daemon);
  object params = submission(line, daemon, worker);
  if (worker.empty()) return answer_with(daemon, line, daemon.call_raw("task.submit", rpc::to_text(params)));
  if (!params.contains("key")) params["key"] = new_submit_key();
  return answer_with(daemon, line, submit_until_certain(daemon, rpc::to_text(params)));
}

int run_chat_send(const CommandLine& line) {
  const RecordPrinter checked(line);
  DaemonClient daemon(line);
  object params = common_params(line, daemon, !shared_worker(daemon).empty());
  params["message"] = joined_words(line);
  return answer_with(daemon, line, daemon.call_raw("chat.send", rpc::to_text(params)));
}

}  // namespace duet::app
