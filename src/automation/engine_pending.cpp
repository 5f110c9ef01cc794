#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "automation/engine.h"

namespace duet::automation {

bool Engine::waits_for_tasks(const ActiveRule& active) {
  return active.rule.when_busy != WhenBusy::each && active.rule.action.type == Action::Type::agent && active.busy();
}

// Only an approval ends its task.
bool Engine::asks_although_busy(const ActiveRule& active) {
  return active.rule.when_busy == WhenBusy::restart && active.rule.requires_approval;
}

// What the pace refuses. Where each event tells of something else, one firing cannot stand for all of a minute.
bool Engine::happens_later(const ActiveRule& active, std::string_view refusal) {
  const bool may_join = refusal == Pace::cooling || active.rule.when_busy != WhenBusy::each;
  return !refusal.empty() && active.rule.trailing && may_join;
}

// Of rules that were not there just now. Each task says whose it is; the list of firings may have let go of it.
void Engine::find_live_tasks() {
  const auto note_live = [this, is_there = lifetime_.watch()](const task::Task& task) {
    if (!is_there()) return false;
    const std::optional<Origin> origin = origin_of(task);
    ActiveRule* const active = origin ? rules_.find(origin->rule_id) : nullptr;
    if (active != nullptr) active->live.insert(task.id);
    return true;
  };
  const auto note_problem = [this](const std::optional<rpc::Error>& problem) {
    if (problem) log_.warn("the tasks of rules cannot be read", {{"reason", problem->message()}});
  };
  for (const task::State state : {task::State::queued, task::State::running}) {
    queue_.list({.state = state, .limit = INT64_MAX, .of_rules = true}, note_live, lifetime_.bind(note_problem));
  }
}

void Engine::wait(ActiveRule& active, const Event& event, Firing firing, std::string reason) {
  firing.reason = reason;
  active.pending = Pending{event, firing};
  hold(std::move(firing), std::move(reason));
  set_release_timer();
}

// One waits already. Files add up; of anything else the newest counts.
void Engine::join(ActiveRule& active, const Event& event, std::size_t count) {
  Pending& pending = *active.pending;
  pending.firing.count += count;
  if (event.source == "watch" && pending.event.source == "watch") {
    add_paths(pending.event, event);
    prefer_what_is_there(pending.event, event);
  } else {
    pending.event.type = event.type;
    pending.event.payload = event.payload;
  }
  pending.firing.cause = automation::cause_of(pending.event);
  if (event.depth > pending.event.depth) {
    pending.event.depth = event.depth;
    pending.event.cause = pending.firing.by = event.cause;
  }
  hold(pending.firing, pending.firing.reason);
}

// Nothing that happened before a rule is on sets it off.
void Engine::forget_pending(ActiveRule& active) {
  if (!active.pending) return;
  Firing firing = std::exchange(active.pending, std::nullopt)->firing;
  hold(std::move(firing), switched_off);
}

// Of rules that may come back.
void Engine::forget_pending_of_absent() {
  rules_.drop_absent(switched_off);
  for (const Firing& dropped : rules_.take_dropped()) hold(dropped, dropped.reason);
}

void Engine::cancel_tasks_of(const ActiveRule& active) {
  for (const task::TaskId id : active.live) {
    queue_.cancel(id, [](const tl::expected<void, rpc::Error>&) {});  // it may have ended by itself
  }
}

void Engine::release(ActiveRule& active) {
  if (!active.pending || closed_ || !works(active)) return;
  const base::UtcTime now = loop_.clock().utc();
  const std::string_view refusal = active.pace.refusal(now, active.rule.cooldown);
  if (happens_later(active, refusal)) return;
  if (waits_for_tasks(active) && !asks_although_busy(active)) {
    if (active.rule.when_busy == WhenBusy::restart && refusal.empty()) cancel_tasks_of(active);
    return;
  }
  Pending pending = *std::exchange(active.pending, std::nullopt);
  if (!refusal.empty()) return hold(std::move(pending.firing), std::string(refusal));
  pending.firing.at = now;
  pending.firing.turn = firings_.next_turn();
  pending.firing.reason.clear();
  active.pace.fired(now);
  if (pending.event.depth == 0) active.chain.clear();
  fire(active, pending.event, std::move(pending.firing));
}

void Engine::release_all() {
  for (const auto& active : rules_.all()) release(*active);
  set_release_timer();
}

// For the first cooldown or minute that ends; the end of a task is told.
void Engine::set_release_timer() {
  const base::UtcTime now = loop_.clock().utc();
  std::optional<base::UtcTime> first;
  for (const auto& active : rules_.all()) {
    if (!active->pending || (waits_for_tasks(*active) && active->rule.when_busy != WhenBusy::restart)) continue;
    const std::optional<base::UtcTime> at = active->pace.free_at(active->rule.cooldown);
    if (at && *at > now && (!first || *at < *first)) first = at;
  }
  if (!first || closed_) return releasing_.cancel();
  releasing_ = loop_.after(*first - now, [this] { release_all(); });
}

}  // namespace duet::automation
