#include <chrono>
#include <exception>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/far_place.h"
#include "app/commands/cert_facts.h"
#include "app/commands/commands.h"
#include "app/view/display_text.h"
#include "app/view/task_view.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::array;
using boost::json::object;

// Whoever has pressed the tabulator waits.
constexpr std::chrono::milliseconds patience_of_a_shell(400);
constexpr int most_offered = 100;
constexpr std::size_t most_described = 50;  // columns

// Bash cuts words at colons, too: `tls`, `:`, `//build.example`.
std::string joined_at_colons(const std::vector<std::string>& words, std::size_t first) {
  std::string out = words[first];
  for (std::size_t i = first + 1; i + 1 < words.size(); i += 2) {
    if (words[i].find_first_not_of(':') != std::string::npos) break;
    out += words[i] + words[i + 1];
  }
  return out;
}

// The value of an option among the words of a command line that is still being written.
std::optional<std::string> value_among(const std::vector<std::string>& words, std::string_view option) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i].starts_with(std::string(option) + "=")) return words[i].substr(option.size() + 1);
    if (words[i] != option) continue;
    const std::size_t value = i + 1 < words.size() && words[i + 1] == "=" ? i + 2 : i + 1;  // bash cuts there
    return value + 1 < words.size() ? std::optional(joined_at_colons(words, value)) : std::nullopt;
  }
  return std::nullopt;
}

// As if a command had been called with what was given so far of where the daemon is.
CommandLine asking_line(const CommandLine& line) {
  CommandLine asking;
  asking.command = find_command("task list");
  for (const std::string_view name : place_option_names) {
    if (auto value = value_among(line.arguments, "--" + std::string(name))) {
      asking.options.push_back({find_option(asking.command, name), std::move(*value)});
    }
  }
  return asking;
}

// A candidate, and behind a tabulator what it is.
std::string candidate(const std::string& name, const std::string& what) {
  return one_line(name) + '\t' + cut_to_width(one_line(what), most_described) + '\n';
}

std::string tasks_among(DaemonClient& daemon, const object& params, bool (*wanted)(const object&)) {
  std::string out;
  const boost::json::value list = daemon.call("task.list", params);
  for (const boost::json::value& entry : list.as_array()) {
    const object& record = entry.as_object();
    if (!wanted(record)) continue;
    out += candidate(member_text(record, "id"), member_text(record, "state") + ", " + member_text(record, "prompt"));
  }
  return out;
}

bool is_any(const object& /*record*/) { return true; }

// A task may have gone from one state to the other between two questions.
std::string each_once(const std::string& lines) {
  std::string out;
  std::set<std::string> names;
  for (std::size_t at = 0; at < lines.size();) {
    const std::size_t end = lines.find('\n', at) + 1;
    const std::string line = lines.substr(at, end - at);
    if (names.insert(line.substr(0, line.find('\t'))).second) out += line;
    at = end;
  }
  return out;
}

std::string offered_members(const boost::json::value& list, std::string_view name, std::string_view what) {
  std::string out;
  for (const boost::json::value& entry : list.as_array()) {
    out += candidate(member_text(entry.as_object(), name), member_text(entry.as_object(), what));
  }
  return out;
}

std::string candidates_of(DaemonClient& daemon, const std::string& kind) {
  const object newest{{"limit", most_offered}};
  if (kind == "task") return tasks_among(daemon, newest, is_any);
  if (kind == "ended-task") return tasks_among(daemon, newest, has_ended);
  if (kind == "live-task") {
    return each_once(tasks_among(daemon, {{"state", "running"}, {"limit", most_offered}}, is_any) +
                     tasks_among(daemon, {{"state", "queued"}, {"limit", most_offered}}, is_any));
  }
  if (kind == "agent") return offered_members(daemon.call("agent.list").at("agents"), "name", "program");
  if (kind == "group") return offered_members(daemon.call("queue.status").at("groups"), "name", "");
  if (kind == "token") return offered_members(daemon.call("token.list"), "name", "role");
  return offered_members(daemon.call("automation.status").at("rules"), "id", "type");
}

std::string certificates_of_clients() {
  std::string out;
  std::string last;
  for (const Certificate& each : present_holdings().clients) {
    if (each.name != last) out += candidate(each.name, each.role);
    last = each.name;
  }
  return out;
}

}  // namespace

// For shells: whatever goes wrong, nothing is offered and nothing is said.
int run_candidates(const CommandLine& line) {
  try {
    if (line.arguments.front() == "certificate") return print_text(certificates_of_clients());
    DaemonClient daemon(asking_line(line), patience_of_a_shell);
    return print_text(candidates_of(daemon, line.arguments.front()));
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace duet::app
