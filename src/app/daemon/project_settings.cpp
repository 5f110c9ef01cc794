// How the daemon of a project takes over what its settings files say.

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/json/array.hpp>

#include "app/daemon/project_daemon.h"
#include "app/project/failure.h"
#include "app/settings/trusted_files.h"
#include "task/refusal.h"

namespace duet::app {

// Or what is wrong with them.
tl::expected<ProjectDaemon::SettingsAndPlan, std::string> ProjectDaemon::read_settings_and_plan() const {
  auto read = read_settings(context_.project, context_.places);
  if (const auto* error = std::get_if<SettingsError>(&read)) return tl::unexpected(error->text);
  auto& settings = std::get<Settings>(read);
  auto plan = automation::Engine::prepare(settings.rules, settings.watch);
  if (!plan) return tl::unexpected(std::string(plan.error()));
  return SettingsAndPlan{std::move(settings), std::move(*plan)};
}

tl::expected<Reloaded, std::string> ProjectDaemon::reload() {
  auto next = read_settings_and_plan();
  if (!next) {
    log_.error("the settings were not changed", {{"reason", next.error()}});
    set_settings_fault(next.error());
    return tl::unexpected(next.error());
  }
  // All of them are good: from here on nothing fails.
  SettingsChange change = change_between(settings_.words, next->settings.words);
  const std::string restart = task::keep_until_restart(settings_.cluster, next->settings.cluster);
  problems_.set("restart", restart);
  settings_ = std::move(next->settings);
  tasks_.queue().change_settings(task_settings());
  if (tasks_.shared() != nullptr) tasks_.shared()->change_cluster(settings_.cluster);
  look_at_readers();
  look_at_limits();
  if (automation_begun_) automation_.configure(std::move(next->plan));
  bridge_.set_definitions(settings_.servers);
  http_.reload(settings_.http);
  const TlsService::Reloaded tls = tls_.reload(settings_.tls, settings_.http.hosts);
  for (const std::string& name : tls.changed) {
    if (std::ranges::find(change.changed, name) == change.changed.end()) change.changed.push_back(name);
  }
  watch_revoked();
  set_settings_fault({});
  note_trust();
  log_.info("the settings were read again");
  if (!restart.empty()) log_.warn("settings need a restart", {{"what", restart}});
  if (!change.empty()) tell_change(change);
  Reloaded reloaded{.added = change.added, .removed = change.removed, .changed = change.changed};
  std::string note;
  for (const std::string& part : {settings_.note, tls.fault, restart}) {
    if (!part.empty()) note += (note.empty() ? "" : "; ") + part;
  }
  if (!note.empty()) reloaded.note = note;
  return reloaded;
}

Reloaded ProjectDaemon::reload_or_refuse() {
  auto reloaded = reload();
  if (!reloaded) throw task::unavailable("settings", "the settings stay as they were: " + reloaded.error());
  return std::move(*reloaded);
}

// A file that was saved as it was, or a folder beside it, changes nothing.
void ProjectDaemon::take_saved_settings() {
  if (end_.has_begun()) return;
  const auto next = read_settings_and_plan();
  const bool same = next && next->settings.words == settings_.words && next->settings.note == settings_.note &&
                    next->settings.withheld == settings_.withheld;
  if (!same || !settings_fault_.empty()) reload();
}

// Whoever revokes a certificate need not know which daemons run.
void ProjectDaemon::watch_revoked() {
  const std::string file = tls_.address() ? tls_.revoked_file() : "";
  if (std::exchange(revoked_file_, file) == file) return;
  revoked_watch_.reset();
  if (!file.empty()) revoked_watch_.emplace(loop_, log_, std::vector{file}, [this] { tls_.take_revoked(); });
}

void ProjectDaemon::tell_change(const SettingsChange& change) {
  const auto names = [](const std::vector<std::string>& list) { return boost::json::array(list.begin(), list.end()); };
  tell("settingsChanged",
       {{"added", names(change.added)}, {"removed", names(change.removed)}, {"changed", names(change.changed)}});
}

// Commands find it in the state folder, and say it.
void ProjectDaemon::set_settings_fault(const std::string& fault) {
  if (std::exchange(settings_fault_, fault) == fault) return;
  problems_.set("settings", fault);
  if (fault.empty()) return context_.folder.remove(settings_fault_name);
  try {
    context_.folder.write_small(settings_fault_name, fault + '\n');
  } catch (const Failure& failure) {
    log_.warn("commands cannot be told of the settings", {{"reason", failure.what()}});
  }
}

void ProjectDaemon::note_trust() {
  problems_.set("trust", settings_.note);
  if (!settings_.note.empty()) log_.warn("settings do not count", {{"what", settings_.note}});
}

// All that read_settings() goes by.
std::vector<std::string> ProjectDaemon::settings_files() const {
  const SettingsPlaces& places = context_.places;
  if (!places.only.empty()) return {places.only};
  std::vector<std::string> files{"/proc/self/fd/" + std::to_string(context_.project.directory.get()) +
                                 "/.duet-rpc.toml"};
  if (!places.user.empty()) files.push_back(places.user);
  if (!places.user_state.empty()) files.push_back(places.user_state + '/' + TrustedFiles::name);
  return files;
}

}  // namespace duet::app
