#include "app/doctor/doctor.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/commands/cluster_place.h"
#include "app/commands/commands.h"
#include "app/doctor/cluster_facts.h"
#include "app/project/failure.h"
#include "app/project/last_end.h"
#include "app/project/running_daemon.h"
#include "app/project/state_owner.h"
#include "app/view/table.h"
#include "app/view/text_style.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using Verdict = Finding::Verdict;

void add(std::vector<Finding>& findings, std::vector<Finding> more) {
  findings.insert(findings.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// What a daemon that answers says about itself.
std::vector<Finding> ask_daemon(DaemonClient& daemon) {
  const boost::json::value status = daemon.call("daemon.status");
  std::vector<Finding> findings{{"daemon", Verdict::good, "running, pid " + rpc::to_text(status.at("pid"))},
                                {"socket", Verdict::good, "answers"}};
  if (status.at_pointer("/subsystems/store/healthy") == true) {
    findings.push_back({"store", Verdict::good, "can be read and written"});
  }
  if (const boost::json::value* const last = status.as_object().if_contains("last_end")) {
    const std::string how(last->at("how").as_string());
    findings.push_back(
        {"last daemon", Verdict::note, "the last one, pid " + rpc::to_text(last->at("pid")) + ", " + how});
  }
  for (const boost::json::value& problem : status.at("problems").as_array()) {
    if (problem.at("subsystem") == "trust") continue;  // a note of our own
    findings.push_back({std::string(problem.at("subsystem").as_string()), Verdict::wrong,
                        std::string(problem.at("message").as_string())});
  }
  return findings;
}

std::vector<Finding> check_folder(const Project& project, const StateFolder& folder, bool shares_queue, bool fix) {
  const std::optional<DaemonLock> lock = DaemonLock::take(folder);
  if (!lock) {
    return {{"daemon", Verdict::wrong,
             "a process holds the daemon's lock, but nobody answers at the socket: end that process, or wait"}};
  }
  std::vector<Finding> findings{{"daemon", Verdict::note, "not running; 'duet-rpc daemon start' starts it"}};
  const auto why_not_ours = why_not_our_state(project, folder);
  const auto unfinished = shares_queue && !why_not_ours ? check_unfinished(folder) : std::nullopt;
  add(findings, unfinished ? std::vector{*unfinished} : check_place(project, state_place(settings_places())));
  if (why_not_ours) {
    findings.push_back({"store", Verdict::wrong, *why_not_ours});
    return findings;  // what is in it is not for us to look at
  }
  if (const std::optional<LastEnd> last = read_last_end(folder)) {
    findings.push_back({"last daemon", Verdict::note, to_text(*last) + "; 'duet-rpc daemon logs' may tell more"});
  }
  findings.push_back(check_store(folder));
  add(findings, check_leftovers(folder, fix));
  return findings;
}

// It may hang, or be stopped by a signal.
Finding silent_daemon(const StateFolder& folder, const Failure& failure) {
  const std::optional<pid_t> pid = lock_holder(folder);
  const std::string who = pid ? "pid " + std::to_string(*pid) + ": " : "";
  return {"daemon", Verdict::wrong, who + failure.what()};
}

// A daemon that is well answers in milliseconds.
constexpr std::chrono::milliseconds patience(2500);
constexpr std::chrono::milliseconds database_patience = std::chrono::seconds(10);

std::vector<Finding> look_at_daemon(const CommandLine& line, const Project& project, bool shares_queue) {
  DaemonClient daemon(line, patience);
  try {
    return ask_daemon(daemon);
  } catch (const Failure& failure) {
    if (failure.code() == exit_code::no_answer && daemon.folder() != nullptr)
      return {silent_daemon(*daemon.folder(), failure)};
    if (failure.code() != exit_code::no_daemon) throw;
  }
  if (daemon.folder() != nullptr) return check_folder(project, *daemon.folder(), shares_queue, line.flag("fix"));
  std::vector<Finding> findings{{"daemon", Verdict::note, "never started here; 'duet-rpc daemon start' starts it"}};
  add(findings, check_place(project, state_place(settings_places())));
  return findings;
}

std::vector<Finding> check_daemon(const CommandLine& line, const Project& project, bool shares_queue) {
  std::vector<Finding> findings;
  try {
    return look_at_daemon(line, project, shares_queue);
  } catch (const Failure& failure) {
    findings.push_back({"daemon", Verdict::wrong, failure.what()});
  }
  add(findings, check_place(project, state_place(settings_places())));
  return findings;
}

std::string as_json(const std::vector<Finding>& findings, bool healthy) {
  boost::json::array list;
  for (const Finding& finding : findings) {
    list.push_back({{"subject", finding.subject}, {"verdict", name_of(finding.verdict)}, {"text", finding.text}});
  }
  return rpc::to_text(boost::json::object{{"healthy", healthy}, {"findings", std::move(list)}}) + '\n';
}

Table::Paint paint_of(Verdict verdict) {
  if (verdict == Verdict::wrong) return Table::Paint::fault;
  return verdict == Verdict::note ? Table::Paint::faint : Table::Paint::good;
}

std::string for_people(const std::vector<Finding>& findings, const TextStyle& style) {
  Table table({"WHAT", "HOW", "WHY"});
  for (const Finding& finding : findings) {
    table.add({{finding.subject}, {std::string(name_of(finding.verdict)), paint_of(finding.verdict)}, {finding.text}});
  }
  return table.text(style, std::nullopt);  // what to do must not be cut
}

}  // namespace

int run_doctor(const CommandLine& line) {
  const Project project = find_project(line.text("project"));
  std::vector<Finding> findings{{"project", Verdict::good, project.root}};
  const auto settings = read_settings(project, settings_places());
  findings.push_back(check_settings(settings));
  bool shares_queue = false;
  if (const auto* read = std::get_if<Settings>(&settings)) {
    if (!read->note.empty()) findings.push_back({"trust", Verdict::note, read->note});
    add(findings, check_agents(read->tasks, process::current_environment(), project.root));
    add(findings, check_servers(read->servers, process::current_environment()));
    add(findings, check_tls(read->tls, tls_folder(settings_places())));
    shares_queue = read->cluster.store.has_value();
    if (shares_queue)
      add(findings, check_cluster(cluster_facts(read->cluster, remembered_queue(project), database_patience)));
  }
  add(findings, check_daemon(line, project, shares_queue));
  const bool healthy = std::ranges::none_of(findings, [](const Finding& f) { return f.verdict == Verdict::wrong; });
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  print_text(line.flag("json") ? as_json(findings, healthy) : for_people(findings, style));
  return healthy ? 0 : exit_code::failed;
}

}  // namespace duet::app
