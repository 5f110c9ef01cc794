#include "automation/engine.h"

#include <time.h>

#include <algorithm>
#include <exception>
#include <utility>

#include <boost/json/array.hpp>

#include "duet/base/utc_text.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"
#include "task/refusal.h"

namespace duet::automation {
namespace {

namespace json = boost::json;

Event event_of(const FileChange& change) {
  return {.source = "watch", .type = std::string(name_of(change.type)), .payload = {{"path", change.path}}};
}

Event event_of(const task::Task& task) {
  const task::Progress& progress = task.progress;
  const std::string_view state = task::name_of(progress.state);
  json::object payload{
      {"taskId", task::to_text(task.id)}, {"agent", task.agent}, {"state", state}, {"exitCode", nullptr}};
  if (progress.exit_code) payload["exitCode"] = *progress.exit_code;
  payload["signal"] = progress.signal.empty() ? json::value(nullptr) : json::value(progress.signal);
  return {.source = "task", .type = "task." + std::string(state), .payload = std::move(payload)};
}

rpc::Error not_kept() {
  return task::unavailable("store", "it is done, but cannot be written down, and ends with the daemon");
}

rpc::Error unknown(std::string_view param, std::string_view expected, std::string_view received,
                   const json::array& accepted) {
  constexpr std::size_t shown_characters = 64;
  return rpc::invalid_params(param, expected, rpc::first_characters(received, shown_characters),
                             rpc::to_text(accepted));
}

}  // namespace

Engine::Engine(transport::Loop& loop, base::Log& log, int root, Actions actions, EngineLimits limits)
    : loop_(loop),
      log_(log),
      root_(root),
      actions_(std::move(actions)),
      limits_(limits),
      keepsake_(actions_.keep, [this] { return saved(); }),
      alarm_(loop, [this] { look_at_schedules(); }) {
  load();
}

void Engine::configure(const std::vector<Rule>& rules, const WatchSettings& watch) {
  rules_.replace(rules, loop_.clock().utc());
  list_what_was_missed();
  set_alarm();
  watch_files(watch);
}

void Engine::watch_files(const WatchSettings& settings) {
  std::vector<RuleMatch> matches;  // as they are now: other rules may be at work while what they add is read
  for (const auto& active : rules_.all()) {
    if (active->match.watches_files()) matches.push_back(active->match);
  }
  if (matches.empty()) return watch_.reset();
  const auto wanted = [matches = std::move(matches)](std::string_view path) {
    return std::any_of(matches.begin(), matches.end(), [&](const RuleMatch& match) { return match.wants_file(path); });
  };
  if (watch_) return watch_->change(settings, wanted);
  const auto changed = [this](const std::vector<FileChange>& changes) { take_changes(changes); };
  const auto problem = [this](const std::string& text) { log_.warn(text); };
  watch_ =
      std::make_unique<FileWatch>(loop_, root_, settings, FileWatch::Actions{wanted, changed, problem}, limits_.watch);
}

void Engine::take_changes(const std::vector<FileChange>& changes) {
  std::vector<Event> events;
  events.reserve(changes.size());
  for (const FileChange& change : changes) events.push_back(event_of(change));
  for (const auto& active : rules_.all()) {
    if (!works(*active)) continue;
    std::optional<Event> first;  // stands for all of them
    std::size_t count = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (!active->match.accepts(events[i])) continue;
      if (count++ == 0) first = events[i];
      const std::optional<Cause> cause = active->effects.cause_of(changes[i].seen, limits_.watch.settle);
      if (!cause || cause->depth <= first->depth) continue;
      first->depth = cause->depth;
      first->cause = task::to_text(cause->task);
    }
    if (first) consider(*active, *first, count);
  }
}

void Engine::list_what_was_missed() {
  for (const auto& active : rules_.all()) {
    if (!active->schedule) continue;
    const Schedule::Passed missed = active->schedule->advance(loop_.clock().utc());
    if (missed.count == 0 || !works(*active)) continue;
    hold(new_firing(*active, missed.count), "missed: the daemon was not running");
  }
}

void Engine::look_at_schedules() {
  for (const auto& active : rules_.all()) {
    if (!active->schedule) continue;
    const Schedule::Passed passed = active->schedule->advance(loop_.clock().utc());
    if (passed.count > 0 && works(*active)) take_due(*active, passed);
  }
  set_alarm();
}

void Engine::take_due(ActiveRule& active, const Schedule::Passed& passed) {
  const bool in_time = loop_.clock().utc() - passed.last <= limits_.lateness;
  const std::size_t missed = passed.count - (in_time ? 1 : 0);
  if (missed > 0) hold(new_firing(active, missed), "missed: the machine was asleep, or its clock was set");
  const Event event{.source = "schedule", .type = "schedule.due", .payload = {{"time", base::utc_text(passed.last)}}};
  if (in_time && active.match.accepts(event)) consider(active, event, 1);
}

void Engine::set_alarm() {
  tzset();  // the system's time zone may be another by now
  base::UtcTime next = base::UtcTime::max();
  for (const auto& active : rules_.all()) {
    if (active->schedule) next = std::min(next, active->schedule->next());
  }
  if (next == base::UtcTime::max()) return alarm_.unset();
  alarm_.set(next);
  keepsake_.save({});  // up to when times were dealt with, so that a later daemon knows what it has missed
}

void Engine::daemon_started() { offer({.source = "daemon", .type = "daemon.started"}); }

void Engine::task_started(const task::Task& task) {
  if (const std::optional<Origin> origin = origin_of(task)) note_start(task, *origin);
}

void Engine::note_start(const task::Task& task, const Origin& origin) {
  ActiveRule* active = rules_.find(origin.rule_id);
  if (active == nullptr) return;
  // A quick task has changed files before we hear that it runs.
  const base::UtcTime utc = loop_.clock().utc();
  const base::UtcTime started = std::min(task.progress.started_at.value_or(utc), utc);
  active->effects.started({task.id, origin.depth}, loop_.now() - (utc - started));
}

void Engine::task_ended(const task::Task& task) {
  Event event = event_of(task);
  if (const std::optional<Origin> origin = origin_of(task)) {
    event.depth = origin->depth;
    event.cause = task::to_text(task.id);
    if (watch_) watch_->drain();  // what was changed until now may be its doing, however late we come to read it
    note_start(task, *origin);
    if (ActiveRule* active = rules_.find(origin->rule_id)) active->effects.ended(task.id, loop_.now());
  }
  offer(event);
}

void Engine::offer(const Event& event) {
  for (const auto& active : rules_.all()) {
    if (works(*active) && active->match.accepts(event)) consider(*active, event, 1);
  }
}

void Engine::consider(ActiveRule& active, const Event& event, std::size_t count) {
  if (event.depth >= limits_.depth) {
    return hold(new_firing(active, count), "depth limit: " + std::to_string(limits_.depth) +
                                               " tasks of rules have led to each other, the last one " + event.cause);
  }
  const base::UtcTime now = loop_.clock().utc();
  const std::string_view refusal = active.pace.refusal(now, active.rule.cooldown);
  if (!refusal.empty()) return hold(new_firing(active, count), std::string(refusal));
  active.pace.fired(now);
  fire(active, event, count);
}

void Engine::fire(const ActiveRule& active, const Event& event, std::size_t count) {
  Firing firing = new_firing(active, count);
  auto prepared = work_of(active.rule, event, firing.id, count);
  if (const auto* missing = std::get_if<MissingField>(&prepared)) {
    return hold(std::move(firing), "template: the event has no " + missing->name);
  }
  Work& work = std::get<Work>(prepared);
  if (active.rule.requires_approval) {
    firing.awaiting = std::move(work);
    firing.kept = false;  // who sees it may count on it
    return hold(std::move(firing), "approval");
  }
  run(std::move(firing), work, [this](Firing ran, const std::optional<rpc::Error>& error) {
    error ? hold(std::move(ran), error->message()) : has_fired(std::move(ran));
  });
}

void Engine::run(Firing firing, const Work& work, Ran ran) {
  if (!work.submission) {
    actions_.tell("notice", {{"ruleId", firing.rule_id}, {"id", firing.id}, {"message", work.notice}});
    return ran(std::move(firing), std::nullopt);
  }
  actions_.submit(*work.submission, [alive = std::weak_ptr(alive_), firing = std::move(firing),
                                     ran = std::move(ran)](const std::variant<task::TaskId, rpc::Error>& result) {
    if (alive.expired()) return;
    Firing done = firing;
    if (const auto* error = std::get_if<rpc::Error>(&result)) return ran(std::move(done), *error);
    done.task_id = task::to_text(std::get<task::TaskId>(result));
    ran(std::move(done), std::nullopt);
  });
}

void Engine::approve(std::string_view firing_id, const Done& done) {
  Firing* waiting = firings_.find(firing_id);
  if (waiting == nullptr || !waiting->awaiting) {
    return done(unknown("id", "a firing that waits for approval", firing_id, firings_.awaiting()));
  }
  const Work work = *std::exchange(waiting->awaiting, std::nullopt);  // nobody approves it twice meanwhile
  run(*waiting, work, [this, work, done](Firing ran, const std::optional<rpc::Error>& error) {
    if (error) {
      ran.awaiting = work;
      list(std::move(ran));
    } else {
      ran.reason.clear();
      has_fired(std::move(ran));
    }
    done(error);
  });
}

void Engine::has_fired(Firing firing) {
  log_.info("rule fired", {{"rule", firing.rule_id}, {"firing", firing.id}, {"task", firing.task_id}});
  json::object told{{"ruleId", firing.rule_id}, {"id", firing.id}, {"count", firing.count}};
  if (!firing.task_id.empty()) told["taskId"] = firing.task_id;
  list(std::move(firing));
  actions_.tell("automationFired", std::move(told));
}

void Engine::hold(Firing firing, std::string reason) {
  log_.info("rule held back", {{"rule", firing.rule_id}, {"firing", firing.id}, {"reason", reason}});
  firing.reason = std::move(reason);
  list(std::move(firing));
}

Firing Engine::new_firing(const ActiveRule& active, std::size_t count) {
  return {.id = firings_.next_id(), .rule_id = active.rule.id, .at = loop_.clock().utc(), .count = count};
}

void Engine::list(Firing firing) {
  const std::string id = firing.id;
  if (Firing* known = firings_.find(id)) {
    *known = std::move(firing);
  } else {
    firings_.add(std::move(firing));
  }
  keepsake_.save([this, id](bool) {
    if (Firing* listed = firings_.find(id)) listed->kept = true;
  });
}

void Engine::enable(const std::optional<std::string>& rule_id, bool enabled, const Done& done) {
  if (!rule_id) {
    enabled_ = enabled;
    problem_.clear();
  } else if (ActiveRule* active = rules_.find(*rule_id)) {
    active->switched = enabled;
  } else {
    return done(unknown("ruleId", "the id of a rule", *rule_id, rules_.ids()));
  }
  keepsake_.save([done](bool kept) { done(kept ? std::nullopt : std::optional(not_kept())); });
}

json::object Engine::status() const {
  json::array rules;
  for (const auto& active : rules_.all()) rules.push_back(shown_rule(*active));
  json::object status{
      {"enabled", enabled_}, {"ruleCount", rule_count()}, {"rules", std::move(rules)}, {"recent", firings_.shown()}};
  const std::vector<std::string> faults = problems();
  if (!faults.empty()) status["problems"] = json::array(faults.begin(), faults.end());
  return status;
}

json::object Engine::shown_rule(const ActiveRule& active) const {
  const Rule& rule = active.rule;
  json::object shown{{"id", rule.id},
                     {"enabled", active.enabled()},
                     {"action", rule.action.type == Action::Type::agent ? "agent" : "notify"},
                     {"requiresApproval", rule.requires_approval}};
  const auto show = [&](std::string_view name, const std::string& text) {
    if (!text.empty()) shown[name] = text;
  };
  show("source", rule.trigger.source);
  show("type", rule.trigger.type);
  show("pattern", rule.trigger.pattern);
  show("cron", rule.trigger.cron);
  show("agent", rule.action.agent);
  if (active.schedule) show("nextAt", base::utc_text(active.schedule->next()));
  if (const std::optional<base::UtcTime> at = firings_.last_fired(rule.id)) show("lastFiredAt", base::utc_text(*at));
  return shown;
}

std::vector<std::string> Engine::problems() const {
  std::vector<std::string> problems;
  if (!problem_.empty()) problems.push_back(problem_);
  if (watch_ && !watch_->problem().empty()) problems.push_back(watch_->problem());
  if (!keepsake_.was_kept()) problems.emplace_back("what the rules have done cannot be written down");
  return problems;
}

void Engine::load() {
  const std::optional<std::string> text = keepsake_.recall();
  if (!text) return;
  try {
    const json::value saved = rpc::parse_value(*text);
    firings_.load(saved.at("firings").as_object());
    rules_.load(saved.at("rules").as_object());
    enabled_ = saved.at("enabled").as_bool();
  } catch (const std::exception&) {
    // It may have said that rules are switched off.
    enabled_ = false;
    problem_ = "automation is off, since what it knew cannot be read; `duet-rpc automation enable` begins anew";
    log_.error(problem_);
  }
}

std::string Engine::saved() const {
  return rpc::to_text({{"enabled", enabled_}, {"rules", rules_.save()}, {"firings", firings_.save()}});
}

}  // namespace duet::automation
