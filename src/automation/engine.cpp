#include "automation/engine.h"

#include <time.h>

#include <algorithm>
#include <map>
#include <utility>

#include <boost/json/array.hpp>

#include "automation/memory.h"
#include "duet/base/utc_text.h"
#include "duet/rpc/value.h"

namespace duet::automation {
namespace {

namespace json = boost::json;

constexpr base::Duration second = std::chrono::seconds(1);

Event event_of(const FileChange& change) {
  return {.source = "watch", .type = std::string(name_of(change.type)), .payload = {{"path", change.path}}};
}

Event event_of(const task::Event& told) {
  const json::value params = rpc::parse_value(told.params);
  json::object payload;
  for (const std::string_view name : {"taskId", "agent", "state", "exitCode", "signal"}) {
    const json::value* const found = params.as_object().if_contains(name);
    payload[name] = found == nullptr ? json::value(nullptr) : *found;
  }
  std::string type = "task." + plain_text(payload["state"]);
  const json::value* const attempts = params.as_object().if_contains("attempts");
  std::string occasion = type + ' ' + plain_text(payload["taskId"]) + '.';
  occasion += attempts == nullptr ? "0" : plain_text(*attempts);
  return {.source = "task", .type = std::move(type), .payload = std::move(payload), .occasion = std::move(occasion)};
}

std::string_view name_of(Action::Type type) {
  return type == Action::Type::agent ? "agent" : type == Action::Type::notify ? "notify" : "run";
}

bool is_end(std::string_view kind) {
  return kind == "taskCompleted" || kind == "taskFailed" || kind == "taskCancelled";
}

// Not as a new one: it waits for its next attempt, or was restarted in place.
bool is_queued_again(const task::Event& event) { return event.kind == "taskQueued" && !event.arrived_at; }

}  // namespace

Engine::Engine(transport::Loop& loop, base::Log& log, int root, task::Store& store, task::Queue& queue,
               EngineLimits limits)
    : loop_(loop),
      log_(log),
      root_(root),
      store_(store),
      queue_(queue),
      limits_(limits),
      programs_(loop, root, queue.is_shared()),
      alarm_(loop, [this] { look_at_schedules(false); }) {
  load();
}

Engine::~Engine() = default;

void Engine::load() {
  tl::expected<Memory, rpc::Error> memory = recall_memory(store_);
  if (!memory) throw memory.error();
  enabled_ = memory->enabled;
  saved_position_ = memory->position;
  saved_numbers_ = memory->numbers;
  faults_ = std::move(memory->faults);
  for (const std::string& fault : faults_) log_.error(fault);
  firings_.load(std::move(memory->firings), memory->last_firing);
  for (auto& [id, saved] : memory->rules) rules_.load(id, saved);
  if (memory->taking_over) write(std::move(*memory->taking_over), Kind::fact);
}

tl::expected<Engine::Plan, std::string> Engine::prepare(const std::vector<Rule>& rules, const WatchSettings& watch) {
  auto compiled = Rulebook::compile(rules);
  if (!compiled) return tl::unexpected(compiled.error());
  for (const std::string& glob : watch.ignore) {
    const auto parsed = pattern::parse_glob(glob);
    if (const auto* fault = std::get_if<std::string>(&parsed)) return tl::unexpected("[watch] ignore: " + *fault);
  }
  return Plan{std::move(*compiled), watch};
}

void Engine::configure(Plan plan) {
  if (!configured_ && saved_numbers_ == queue_.numbers()) position_ = saved_position_;  // else of another journal
  const bool some_are_new =
      std::ranges::any_of(plan.rules, [this](const auto& active) { return rules_.find(active->rule.id) == nullptr; });
  std::map<std::string, bool> were_enabled;
  for (const auto& active : rules_.all()) were_enabled[active->rule.id] = active->enabled();
  rules_.replace(std::move(plan.rules), loop_.clock().utc(), newest_event());
  max_chain_ = plan.watch.max_chain;
  if (some_are_new) find_live_tasks();
  for (const std::string& fault : rules_.faults()) log_.error(fault);
  if (!position_) position_ = newest_event();
  Note note = note_of({});
  for (auto& [id, saved] : rules_.saved()) {
    saved.empty() ? note.forget(name::of_rule(id)) : note.remember(name::of_rule(id), saved);
  }
  for (const auto& active : rules_.all()) {
    const auto before = were_enabled.find(active->rule.id);
    const bool is_switched = before != were_enabled.end() && before->second != active->enabled();
    if (is_switched) tell_switched(note, active->rule.id, active->enabled());
  }
  write(std::move(note), Kind::patient_fact);
  for (const Firing& dropped : rules_.take_dropped()) hold(dropped, dropped.reason);
  choose_agents_of_old_work();
  look_at_schedules(!std::exchange(configured_, true));
  watch_files(plan.watch);
  try_approved();
  release_all();
}

// What the journal holds by now. While that cannot be read, what was taken will do.
std::uint64_t Engine::newest_event() const {
  const tl::expected<std::uint64_t, rpc::Error> newest = queue_.newest_event();
  if (!newest) log_.warn("the newest event cannot be read", {{"reason", newest.error().message()}});
  return std::max(newest.value_or(0), position_.value_or(0));
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
  const auto changed = [this](const FileChange& change) { take_change(change); };
  const auto settled = [this] { take_bursts(); };
  const auto problem = [this](const std::string& text) { log_.warn(text); };
  watch_ = std::make_unique<FileWatch>(loop_, root_, settings, FileWatch::Actions{wanted, changed, settled, problem},
                                       limits_.watch);
}

std::optional<Cause> Engine::cause_of(base::TimePoint seen) const {
  return effects_.cause_of(seen, limits_.watch.quiet);
}

void Engine::take_change(const FileChange& change) {
  const Event event = event_of(change);
  for (const auto& active : rules_.all()) {
    if (!works(*active) || !active->match.accepts(event)) continue;
    Burst& burst = active->burst;
    if (burst.count++ == 0) {
      burst.first = event;
      burst.first->payload["paths"].emplace_array();
    }
    prefer_what_is_there(*burst.first, event);
    burst.path_bytes += change.path.size() + 1;
    if (burst.count <= most_paths && burst.path_bytes <= most_path_bytes) {
      burst.first->payload["paths"].get_array().emplace_back(change.path);
    }
    const std::optional<Cause> cause = cause_of(change.seen);
    if (!cause || cause->depth <= burst.first->depth) continue;
    burst.first->depth = cause->depth;
    burst.first->cause = cause->name;
  }
}

void Engine::take_bursts() {
  for (const auto& active : rules_.all()) {
    const Burst burst = std::exchange(active->burst, {});
    if (burst.first && !closed_ && works(*active)) consider(*active, *burst.first, burst.count);
  }
}

void Engine::look_at_schedules(bool after_start) {
  if (closed_) return;
  tzset();  // the system's time zone may be another by now
  Note seen;
  for (const auto& active : rules_.all()) {
    if (!active->schedule) continue;
    const Schedule::Passed passed = active->schedule->advance(loop_.clock().utc());
    if (passed.count == 0) continue;
    if (works(*active)) take_due(*active, passed, after_start);
    seen.remember(name::of_rule(active->rule.id), Rulebook::saved(*active));
  }
  if (!seen.is_empty() && store_is_in_trouble()) {
    save_all_later();
  } else {
    write(std::move(seen), Kind::patient_fact);
  }
  set_alarm();
}

void Engine::take_due(ActiveRule& active, const Schedule::Passed& passed, bool after_start) {
  const bool once = active.rule.missed == Missed::once;
  const bool in_time = !after_start && loop_.clock().utc() - passed.last <= limits_.lateness;
  const std::size_t missed = once ? 0 : passed.count - (in_time ? 1 : 0);
  const std::string time = base::utc_text(passed.last);
  const Event event{
      .source = "schedule", .type = "schedule.due", .payload = {{"time", time}}, .occasion = "schedule.due " + time};
  if (missed > 0) {
    hold(new_firing(active, event, missed),
         after_start ? "missed: the daemon was not running" : "missed: the machine was asleep, or its clock was set");
  }
  if (missed == passed.count) return;
  if (active.match.accepts(event)) consider(active, event, once ? passed.count : 1);
}

// Now and then it rings early: nobody tells when the system's time zone is changed.
void Engine::set_alarm() {
  constexpr std::chrono::minutes longest{30};
  base::UtcTime next = base::UtcTime::max();
  for (const auto& active : rules_.all()) {
    if (active->schedule) next = std::min(next, active->schedule->next());
  }
  if (next == base::UtcTime::max()) return alarm_.unset();
  alarm_.set(std::min(next, loop_.clock().utc() + longest));
}

void Engine::begin(const std::vector<task::Task>& running) {
  for (const task::Task& task : running) note_start(task);
  catch_up();
  release_all();
  if (!closed_) offer({.source = "daemon", .type = "daemon.started"}, newest_event() + 1);
}

void Engine::take(const task::Event& event) {
  if (closed_ || is_behind_ || event.seq <= *position_) return;
  const bool is_next = event.seq == *position_ + 1;
  if (is_next && take_in_order(event)) return;
  is_behind_ = true;
  catch_up_later(is_next ? second : base::Duration::zero());
}

// A portion at a time; what is told meanwhile is in the journal, too.
void Engine::catch_up() {
  catching_up_.cancel();
  constexpr std::size_t portion = 256;
  if (closed_) return;
  using Events = tl::expected<std::vector<task::Event>, rpc::Error>;
  queue_.events_after(*position_, portion, lifetime_.bind([this](const Events& events) {
    if (closed_) return;
    if (!events) return catch_up_later(second);
    for (const task::Event& event : *events) {
      if (!take_in_order(event)) return catch_up_later(second);
    }
    is_behind_ = events->size() == portion;
    if (is_behind_) catch_up_later(base::Duration::zero());
  }));
}

void Engine::catch_up_later(base::Duration wait) {
  if (!catching_up_) catching_up_ = loop_.after(wait, [this] { catch_up(); });
}

// False: it cannot be looked at now.
bool Engine::take_in_order(const task::Event& event) {
  const bool queued_again = is_queued_again(event);
  const bool concerns_rules = queued_again || event.kind == "taskStarted" || is_end(event.kind);
  const auto concerns_nobody = [&] { return rules_.all().empty() && !effects_.knows(task::to_text(event.task)); };
  if (!concerns_rules || concerns_nobody()) {
    position_ = event.seq;
    return true;
  }
  const tl::expected<std::optional<task::Task>, rpc::Error> task = queue_.known(event.task);
  if (!task) return false;
  position_ = event.seq;
  if (is_end(event.kind)) {
    take_end(event, *task);
  } else if (*task) {
    queued_again ? note_wait(**task) : note_start(**task);
  }
  try_approved();  // there may be room for it now
  return true;
}

void Engine::note_start(const task::Task& task) {
  const std::optional<Origin> origin = origin_of(task);
  if (!origin) return;
  // A quick task has changed files before we hear that it runs.
  const base::UtcTime utc = loop_.clock().utc();
  const base::UtcTime started = std::min(task.progress.started_at.value_or(utc), utc);
  effects_.started({task::to_text(task.id), origin->depth}, loop_.now() - (utc - started));
  note_elsewhere(task.id, origin->rule_id);
}

// Rules that fire once for all daemons are busy with a task wherever it was asked for. Those of files and of the daemon
// are each daemon's own. One that restarts what runs ends only what it has asked for itself: another daemon's task may
// be that of the very occasion that comes here a moment later.
void Engine::note_elsewhere(task::TaskId id, const std::string& rule_id) {
  ActiveRule* const active = queue_.is_shared() ? rules_.find(rule_id) : nullptr;
  if (active == nullptr || active->rule.when_busy == WhenBusy::restart) return;
  const std::string& source = active->rule.trigger.source;
  if (source == "task" || source == "schedule") active->live.insert(id);
}

// It waits for its next attempt, or was restarted in place: it does not run, and has not ended.
void Engine::note_wait(const task::Task& task) {
  const std::optional<Origin> origin = origin_of(task);
  if (!origin) return;
  if (watch_) watch_->drain();
  effects_.ended(task::to_text(task.id), loop_.now());
  if (ActiveRule* const active = rules_.find(origin->rule_id)) active->live.insert(task.id);
}

// `task`: none if it is not kept any more.
void Engine::take_end(const task::Event& told, const std::optional<task::Task>& task) {
  Event event = event_of(told);
  if (const std::optional<Origin> origin = task ? origin_of(*task) : std::nullopt) {
    event.depth = origin->depth;
    event.cause = task::to_text(task->id);
    if (watch_) watch_->drain();  // what was changed until now may be its doing, however late we come to read it
    note_start(*task);
    effects_.ended(event.cause, loop_.now());
  }
  for (const auto& active : rules_.all()) active->live.erase(told.task);
  offer(event, told.seq);
  release_all();
}

void Engine::close() {
  if (std::exchange(closed_, true)) return;
  alarm_.unset();
  programs_.close();
  if (will_save_all_) return save_all();
  if (position_) write(note_of({}), Kind::patient_fact);
}

void Engine::write(Note note, Kind kind, std::function<void(bool kept)> done) {
  if (note.is_empty()) return;
  const std::size_t bytes = note.bytes();
  auto written = lifetime_.bind([this, along = note.along(), done = std::move(done)](bool kept) {
    has_gone_along(along, kept);
    if (done) done(kept);
  });
  store_.write({.apply = [note = std::move(note)](task::StoreWriter& writer) { note.write(writer, 0); },
                .done = std::move(written),
                .kind = kind,
                .bytes = bytes});
}

// One fact waits for the store, however much there is to be saved by then.
void Engine::save_all_later() {
  if (std::exchange(will_save_all_, true)) return;
  Note note;
  note.remember(name::last_firing, std::to_string(firings_.last_number()));
  write(std::move(note), Kind::fact, [this](bool) { save_all(); });
}

void Engine::save_all() {
  will_save_all_ = false;
  write(std::exchange(owes_switch_, false) ? note_of_switch(std::nullopt) : note_of_all_rules(), Kind::fact);
}

// Else it goes with the next.
void Engine::has_gone_along(const Note::Along& along, bool kept) {
  if (!kept) firings_.put_back(along.dropped);
  for (const std::uint64_t number : along.held) {
    Firing* const held = firings_.find(number);
    if (held == nullptr) continue;
    held->kept = kept;
    held->unsaved = !kept;
  }
  if (!kept && !along.held.empty()) save_all_later();
}

// How far the journal was read goes with everything: it may fall behind, but never run ahead of what was held back.
Note Engine::note_of(std::string_view rule_id) {
  Note note;
  note.remember(name::position, std::to_string(position_.value_or(0)));
  if (const std::string numbers = queue_.numbers(); !numbers.empty()) note.remember(name::numbers, numbers);
  note.remember(name::last_firing, std::to_string(firings_.last_number()));
  if (const ActiveRule* active = rules_.find(rule_id)) {
    note.remember(name::of_rule(rule_id), Rulebook::saved(*active));
  }
  for (Firings::Dropped& dropped : firings_.take_dropped()) {
    if (dropped.waited) log_.warn("a firing waits for approval no longer: too many do", {{"firing", dropped.name}});
    note.forget_firing(std::move(dropped.name));
  }
  for (Firing& firing : firings_.all()) {
    if (std::exchange(firing.unsaved, false)) note.keep_along(firing);
  }
  return note;
}

Note Engine::note_of_all_rules() {
  Note note = note_of({});
  for (const auto& [id, saved] : rules_.saved()) {
    if (!saved.empty()) note.remember(name::of_rule(id), saved);
  }
  return note;
}

bool Engine::has_work() const {
  return std::ranges::any_of(rules_.all(), [this](const auto& active) { return works(*active); });
}

json::object Engine::status() const {
  json::array rules;
  for (const auto& active : rules_.all()) rules.push_back(shown_rule(*active));
  json::object status{
      {"enabled", enabled_}, {"ruleCount", rule_count()}, {"rules", std::move(rules)}, {"recent", firings_.shown()}};
  const std::vector<std::string> all = problems();
  if (!all.empty()) status["problems"] = json::array(all.begin(), all.end());
  return status;
}

json::object Engine::shown_rule(const ActiveRule& active) const {
  const Rule& rule = active.rule;
  json::object shown{{"id", rule.id},
                     {"enabled", active.enabled()},
                     {"action", name_of(rule.action.type)},
                     {"requiresApproval", rule.requires_approval}};
  const auto show = [&](std::string_view name, const std::string& text) {
    if (!text.empty()) shown[name] = text;
  };
  show("source", rule.trigger.source);
  show("type", rule.trigger.type);
  show("pattern", rule.trigger.pattern);
  show("cron", rule.trigger.cron);
  show("timezone", rule.timezone);
  show("agent", rule.action.agent);
  if (active.schedule && works(active)) show("nextAt", base::utc_text(active.schedule->next()));
  if (const std::optional<base::UtcTime> at = firings_.last_fired(rule.id)) show("lastFiredAt", base::utc_text(*at));
  if (active.pending) show("waiting", id_of(active.pending->firing));
  return shown;
}

std::vector<std::string> Engine::problems() const {
  std::vector<std::string> problems = faults_;
  problems.insert(problems.end(), rules_.faults().begin(), rules_.faults().end());
  for (const auto& active : rules_.all()) {
    if (!active->chain.empty()) problems.push_back(active->chain);
  }
  if (watch_ && !watch_->problem().empty()) problems.push_back(watch_->problem());
  return problems;
}

}  // namespace duet::automation
