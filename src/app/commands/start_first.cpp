#include <unistd.h>

#include <optional>
#include <string>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "app/client/daemon_client.h"
#include "app/client/far_place.h"
#include "app/commands/commands.h"
#include "app/daemon/serve.h"
#include "app/project/failure.h"
#include "app/settings/autostart.h"
#include "app/settings/settings.h"

namespace duet::app {
namespace {

bool is_wanted(const CommandLine& line) {
  switch (line.command->starts) {
    case StartsDaemon::if_wanted:
      return line.flag("start") || autostart_wanted(settings_places());
    case StartsDaemon::if_asked:
      return line.flag("start");
    case StartsDaemon::never:
      break;
  }
  return false;
}

// `daemon start` in the same place. What else this command was given concerns itself only.
CommandLine start_line(const CommandLine& line) {
  CommandLine start{.command = find_command("daemon start"), .program = line.program};
  for (const CommandLine::Given& given : line.options) {
    if (given.option->name == "project" || given.option->name == "socket") start.options.push_back(given);
  }
  return start;
}

}  // namespace

std::string untrusted_note(DaemonClient& daemon) {
  const boost::json::value status = daemon.call("daemon.status");
  for (const boost::json::value& problem : status.at("problems").as_array()) {
    if (problem.at("subsystem") == "trust") return std::string(problem.at("message").as_string());
  }
  return {};
}

void tell_untrusted(DaemonClient& daemon) {
  const std::string note = untrusted_note(daemon);
  if (!note.empty()) daemon.tell_user(note);
}

void start_if_wanted(const CommandLine& line) {
  if (!line.command->client) return;
  if (const std::optional<FarPlace> far = far_place(line)) {
    if (line.command->starts == StartsDaemon::never || !line.flag("start")) return;
    throw Failure("--start is for a daemon of this machine: start the one at " + far->url.place() +
                  " there, with ssh for example");
  }
  if (!is_wanted(line)) return;
  DaemonClient daemon(line);
  if (daemon.is_there()) return;
  try {
    const pid_t pid = start_detached(start_line(line));
    if (isatty(STDERR_FILENO) == 1) daemon.tell_user("started the daemon, pid " + std::to_string(pid));
    DaemonClient started(line);
    started.leave_settings_to_me();
    tell_untrusted(started);
  } catch (const Failure&) {
    if (!DaemonClient(line).is_there()) throw;  // another command was quicker
  }
}

}  // namespace duet::app
