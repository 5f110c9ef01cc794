#include <algorithm>
#include <utility>

#include <boost/json/array.hpp>

#include "automation/engine.h"
#include "automation/memory.h"
#include "automation/template.h"
#include "duet/rpc/json_text.h"
#include "task/refusal.h"

namespace duet::automation {
namespace {

namespace json = boost::json;

constexpr const char* waits_for_approval = "approval";
constexpr const char* was_asked_for = "its task is asked for";
constexpr int queue_full_code = -32002;

rpc::Error not_kept() {
  return task::unavailable("store", "it is done, and written down when the disk can be written again");
}

std::string done_elsewhere(task::TaskId id) { return "another daemon of the queue has done it: " + task::to_text(id); }

rpc::Error no_room() { return task::unavailable("store", "more waits to be written than it can take"); }

rpc::Error unknown(std::string_view param, std::string_view expected, std::string_view received,
                   const json::array& accepted) {
  constexpr std::size_t shown_characters = 64;
  return rpc::invalid_params(param, expected, rpc::first_characters(received, shown_characters), accepted);
}

std::string reason_of(const rpc::Error& refusal) {
  const bool says_little = refusal.code() == rpc::code::invalid_params && !refusal.data().empty();
  return refusal.message() + (says_little ? ": " + refusal.data() : "");
}

// Of a task that other daemons may ask for, too; else empty.
std::string key_of(const Work& work) { return work.submission ? work.submission->key : std::string(); }

// The firing when its work has been taken.
Firing fired(Firing firing) {
  firing.reason.clear();
  firing.awaiting.reset();
  firing.approved = firing.deciding = firing.asked = false;
  return firing;
}

}  // namespace

void Engine::offer(const Event& event, std::uint64_t seq) {
  for (const auto& active : rules_.all()) {
    if (works(*active) && active->since < seq && active->match.accepts(event)) consider(*active, event, 1);
  }
}

void Engine::consider(ActiveRule& active, const Event& event, std::size_t count) {
  if (event.depth >= max_chain_) return stop_chain(active, event, count);
  if (active.pending) return join(active, event, count);
  Firing firing = new_firing(active, event, count);
  const bool is_busy = waits_for_tasks(active) && !asks_although_busy(active);
  if (is_busy && active.rule.when_busy == WhenBusy::skip) return hold(std::move(firing), busy);
  if (is_busy && active.rule.when_busy == WhenBusy::queue)
    return wait(active, event, std::move(firing), busy_until_then);
  const std::string_view refusal = active.pace.refusal(firing.at, active.rule.cooldown);
  if (happens_later(active, refusal)) {
    return wait(active, event, std::move(firing), std::string(refusal) + ": it happens at its end");
  }
  if (!refusal.empty()) return hold(std::move(firing), std::string(refusal));
  if (is_busy) {  // Only now: a task is not ended for what may not happen.
    wait(active, event, std::move(firing), busy_until_then);
    return cancel_tasks_of(active);
  }
  active.pace.fired(firing.at);
  if (event.depth == 0) active.chain.clear();
  fire(active, event, std::move(firing));
}

// Rules that wake each other: the last one rests, until something else sets it off.
void Engine::stop_chain(ActiveRule& active, const Event& event, std::size_t count) {
  Firing firing = new_firing(active, event, count);
  firing.links = links_to(event.cause);
  std::string shown;
  for (const json::value& link : firing.links) {
    const json::value* const task = link.as_object().if_contains("taskId");
    shown += plain_text(link.at("ruleId")) + " (" + plain_text(task == nullptr ? link.at("id") : *task) + "), ";
  }
  active.chain = "rule " + active.rule.id + " was stopped, since " + std::to_string(max_chain_) +
                 " tasks or programs of rules have led to each other: " + shown + "and " + active.rule.id + " again";
  json::object params{{"ruleId", active.rule.id}, {"id", id_of(firing)}, {"links", firing.links}};
  log_.warn(active.chain);
  hold(std::move(firing), chain_limit() + ", the last one " + event.cause, {"chainStopped", std::move(params)});
}

std::string Engine::chain_limit() const {
  return "chain limit: " + std::to_string(max_chain_) + " tasks or programs of rules have led to each other";
}

// A task of a rule, or a firing that has run a program; none if it is not there any more.
std::optional<Engine::Link> Engine::link_of(const std::string& cause) {
  if (const Firing* const firing = firings_.find(std::string_view(cause))) {
    return Link{{{"ruleId", firing->rule_id}, {"id", cause}}, firing->by};
  }
  const std::optional<task::TaskId> id = task::parse_task_id(cause);
  if (!id) return std::nullopt;
  const auto task = queue_.known(*id);
  const std::optional<Origin> origin = task && *task ? origin_of(**task) : std::nullopt;
  if (!origin) return std::nullopt;
  return Link{{{"ruleId", origin->rule_id}, {"taskId", cause}}, origin->cause};
}

// What led to it, the first one first, as far as it is still there.
json::array Engine::links_to(const std::string& last) {
  json::array links;
  std::optional<Link> link = link_of(last);
  for (; link && links.size() < max_chain_; link = link_of(link->before)) links.insert(links.begin(), link->shown);
  return links;
}

void Engine::fire(const ActiveRule& active, const Event& event, Firing firing) {
  auto prepared = work_of(active.rule, event, id_of(firing), firing.count);
  if (const auto* missing = std::get_if<MissingField>(&prepared)) {
    return refuse(std::move(firing), "template: the event has no " + missing->name);
  }
  Work& work = std::get<Work>(prepared);
  if (work.submission) {  // now: later settings may make another program of the default one
    tl::expected<std::string, rpc::Error> agent = queue_.choose_agent(*work.submission);
    if (!agent) return refuse(std::move(firing), reason_of(agent.error()));
    work.submission->agent = std::move(*agent);
    give_key(active.rule, event, *work.submission);
  }
  if (active.rule.requires_approval) return hold_for_approval(std::move(firing), std::move(work));
  firing.kept = false;
  firings_.put(firing);
  const bool is_asked_again = !key_of(work).empty();
  run(firing, work, Kind::fact, [this, firing, is_asked_again](const tl::expected<task::TaskId, Refused>& result) {
    if (!result && closed_ && is_asked_again) return;  // by the next daemon
    if (!result && !result.error().elsewhere.empty()) return hold(firing, result.error().elsewhere);
    result ? has_fired(firing.number, *result) : refuse(firing, reason_of(result.error().error));
  });
}

// Each daemon of a shared queue has its own rules and hears of the same event: the first task counts for all.
void Engine::give_key(const Rule& rule, const Event& event, task::Submission& submission) const {
  if (!queue_.is_shared() || event.occasion.empty()) return;
  submission.key = "rule " + rule.id + ' ' + event.occasion;
  submission.key_decides = true;
}

void Engine::hold_for_approval(Firing firing, Work work) {
  if (!store_.has_room()) return refuse(std::move(firing), reason_of(no_room()));
  const std::string id = id_of(firing);
  json::object params{{"ruleId", firing.rule_id}, {"firingId", id},        {"id", id},
                      {"count", firing.count},    {"cause", firing.cause}, {"would", shown_work(work)}};
  firing.awaiting = std::move(work);
  hold(std::move(firing), waits_for_approval, {"approvalNeeded", std::move(params)});
}

// The work, the firing as it is when that is taken, and what tells of it are one transaction. A task with a key goes
// elsewhere: what is about to be asked for is written down first, with all but its task.
void Engine::run(const Firing& firing, const Work& work, Kind kind, const Ran& ran) {
  if (!work.submission && !store_.has_room()) return ran(tl::unexpected(Refused{no_room(), true}));
  const std::string id = id_of(firing);
  Note note = key_of(work).empty() ? note_of(firing.rule_id) : Note();
  note.keep(fired(firing));
  const bool is_notice = !work.submission && !work.program;
  if (is_notice) note.tell("notice", {{"ruleId", firing.rule_id}, {"id", id}, {"message", work.notice}});
  note.tell("automationFired", {{"ruleId", firing.rule_id}, {"id", id}, {"count", firing.count}});
  if (!work.submission) {
    return write(std::move(note), kind, [this, ran, firing, program = work.program](bool kept) {
      if (kept && program && !closed_) run_program(firing, *program);
      kept ? ran(task::TaskId{0}) : ran(tl::unexpected(Refused{store_.refusal(), false}));
    });
  }
  if (ActiveRule* active = rules_.find(firing.rule_id)) ++active->submitting;
  key_of(work).empty() ? submit(firing, work, std::move(note), kind, ran)
                       : ask_first(firing, work, std::move(note), kind, ran);
}

// A daemon that is killed between both asks again under the same key when it is back: the event is not judged anew.
void Engine::ask_first(const Firing& firing, const Work& work, Note note, Kind kind, const Ran& ran) {
  Firing asked = firing;
  asked.awaiting = work;
  asked.approved = asked.asked = true;
  asked.reason = was_asked_for;
  Note first = note_of(firing.rule_id);
  first.keep(asked);
  write(std::move(first), kind, [this, firing, work, note = std::move(note), kind, ran](bool kept) {
    if (kept && !closed_) return submit(firing, work, note, kind, ran);
    has_submitted(firing.rule_id, std::nullopt);
    ran(tl::unexpected(Refused{kept ? task::is_stopping() : store_.refusal(), kept}));
  });
}

void Engine::submit(const Firing& firing, const Work& work, Note note, Kind kind, const Ran& ran) {
  const auto returned = std::make_shared<bool>(false);
  const auto answered = [this, ran, returned, note, has_key = !key_of(work).empty(), asked = firing.asked,
                         rule = firing.rule_id](const tl::expected<task::Accepted, rpc::Error>& result) {
    const bool is_ours = result && (result->is_new || asked);
    has_gone_along(note.along(), is_ours);
    // Another daemon's is one of the rule as well.
    const bool is_live = result && (result->is_new || !has_ended(result->state));
    has_submitted(rule, is_live ? std::optional(result->id) : std::nullopt);
    if (is_ours && !result->is_new) {  // the daemon before had its task taken, and could not write that down
      store_.write({.apply = [note, id = result->id](task::StoreWriter& writer) { note.write(writer, id); },
                    .kind = Kind::fact});
    }
    if (is_ours) {
      ran(result->id);
    } else if (result) {
      const std::string why = done_elsewhere(result->id);
      ran(tl::unexpected(Refused{task::unavailable("automation", why), false, why}));
    } else {
      const bool is_full = result.error().code() == queue_full_code;
      ran(tl::unexpected(Refused{result.error(), !*returned || is_full || has_key}));
    }
    release_all();  // What waits need not wait for it any more, or has it end.
  };
  queue_.submit(
      *work.submission, lifetime_.bind(answered),
      {.write = [note = std::move(note)](task::StoreWriter& writer, task::TaskId task) { note.write(writer, task); },
       .kind = kind});
  *returned = true;
}

void Engine::has_submitted(const std::string& rule_id, std::optional<task::TaskId> task) {
  ActiveRule* const active = rules_.find(rule_id);
  if (active == nullptr) return;
  if (active->submitting > 0) --active->submitting;
  if (!task) return;
  const auto known = queue_.known(*task);  // its end may have come before the answer
  const bool is_over = known && (!*known || has_ended((*known)->progress.state));
  if (!is_over) active->live.insert(*task);
}

// At most once: a daemon that is killed after the firing is on disk has not started it, or has not heard of its end.
void Engine::run_program(const Firing& firing, const Program& program) {
  const auto started = [this, cause = Cause{id_of(firing), program.depth}] { effects_.started(cause, loop_.now()); };
  programs_.run(program, started, [this, rule = firing.rule_id, id = id_of(firing)](const std::string& failure) {
    if (watch_) watch_->drain();  // what was changed until now may be its doing
    effects_.ended(id, loop_.now());
    if (failure.empty()) return;
    log_.warn("the program of a rule failed", {{"rule", rule}, {"firing", id}, {"reason", failure}});
    Note note;
    note.tell("runFailed", {{"ruleId", rule}, {"id", id}, {"message", failure}});
    write(std::move(note), Kind::fact);
  });
}

void Engine::has_fired(std::uint64_t number, task::TaskId task) {
  if (Firing* const firing = firings_.find(number)) {  // else others have pushed it out
    *firing = fired(std::move(*firing));
    firing->kept = true;
    if (task != 0) firing->task_id = task::to_text(task);
    log_.info("rule fired", {{"rule", firing->rule_id}, {"firing", id_of(*firing)}, {"task", firing->task_id}});
  }
  answer_hand(number);
}

// It did not fire, so that it may as soon as it can. What another daemon has done counts as if it had.
void Engine::refuse(Firing firing, std::string reason) {
  if (ActiveRule* active = rules_.find(firing.rule_id)) active->pace.take_back(firing.at);
  hold(std::move(firing), std::move(reason));
}

// While the store cannot be written the list is all there is, for what is held back may be very much.
void Engine::hold(Firing firing, std::string reason, Told told) {
  log_.info("rule held back", {{"rule", firing.rule_id}, {"firing", id_of(firing)}, {"reason", reason}});
  firing.reason = std::move(reason);
  firing.kept = true;
  Firing listed = firing;
  const Firing* const known = firings_.find(firing.number);  // one that waits, and now for more
  listed.kept = known != nullptr && known->kept;
  listed.unsaved = !firing.awaiting && told.kind.empty() && store_is_in_trouble();
  firings_.put(listed);
  if (listed.unsaved) {
    answer_hand(firing.number);
    return save_all_later();
  }
  Note note = note_of(firing.rule_id);
  note.keep(firing);
  if (!told.kind.empty()) note.tell(told.kind, std::move(told.params));
  write(std::move(note), Kind::fact, [this, number = firing.number](bool) {
    if (Firing* held = firings_.find(number)) held->kept = true;
    answer_hand(number);
  });
}

Firing Engine::new_firing(const ActiveRule& active, const Event& event, std::size_t count) {
  return {.number = firings_.next_number(),
          .turn = firings_.next_turn(),
          .rule_id = active.rule.id,
          .at = loop_.clock().utc(),
          .count = count,
          .cause = automation::cause_of(event),
          .by = event.cause};
}

std::optional<rpc::Error> Engine::why_not_now(const Firing& firing) const {
  if (closed_) return task::is_stopping();
  const auto off = [](const std::string& what) { return task::unavailable("automation", what); };
  if (!enabled_) return off("automation is off: `duet-rpc automation enable`, and approve again");
  const ActiveRule* const active = rules_.find(firing.rule_id);
  if (active == nullptr) return off("rule " + firing.rule_id + " is not in the settings any more");
  if (active->enabled()) return std::nullopt;
  return off("rule " + firing.rule_id + " is off: `duet-rpc automation enable " + firing.rule_id +
             "`, and approve again");
}

void Engine::approve(std::string_view firing_id, const Done& done) {
  Firing* const waiting = firings_.find(firing_id);
  if (waiting == nullptr || !waiting->awaits_approval()) {
    return done(unknown("id", "a firing that waits for approval", firing_id, firings_.awaiting()));
  }
  if (const std::optional<rpc::Error> refusal = why_not_now(*waiting)) return done(refusal);
  const ActiveRule& active = *rules_.find(waiting->rule_id);
  const bool is_busy = waits_for_tasks(active);
  if (is_busy && active.rule.when_busy == WhenBusy::skip) {
    return done(task::unavailable(
        "automation", "a task of rule " + active.rule.id + " has not ended: approve again when it has, or deny"));
  }
  waiting->deciding = true;  // nobody approves it twice meanwhile
  if (is_busy) return keep_approved(waiting->number, busy_until_then, done);
  const Work work = *waiting->awaiting;
  run(*waiting, work, Kind::request,
      [this, done, number = waiting->number](const tl::expected<task::TaskId, Refused>& result) {
        if (!result && result.error().may_come) return keep_approved(number, reason_of(result.error().error), done);
        if (result) {
          has_fired(number, *result);
        } else if (Firing* firing = firings_.find(number)) {
          firing->deciding = false;
        }
        done(result ? std::nullopt : std::optional(result.error().error));
      });
}

void Engine::deny(std::string_view firing_id, const Done& done) {
  Firing* const waiting = firings_.find(firing_id);
  if (waiting == nullptr || !waiting->awaits_approval()) {
    return done(unknown("id", "a firing that waits for approval", firing_id, firings_.awaiting()));
  }
  if (closed_) return done(task::is_stopping());
  waiting->deciding = true;
  Firing denied = *waiting;
  denied.reason = "denied";
  denied.awaiting.reset();
  denied.deciding = false;
  Note note = note_of(denied.rule_id);
  note.keep(denied);
  note.tell("approvalDenied", {{"ruleId", denied.rule_id}, {"id", id_of(denied)}});
  write(std::move(note), Kind::request, [this, done, denied](bool kept) {
    if (Firing* const firing = firings_.find(denied.number)) {
      firing->deciding = false;
      if (kept) *firing = denied;
    }
    done(kept ? std::nullopt : std::optional(store_.refusal()));
  });
}

// It is approved, though it cannot be done now.
void Engine::keep_approved(std::uint64_t number, const std::string& why_later, const Done& done) {
  const Firing* const waiting = firings_.find(number);
  if (waiting == nullptr) return done(task::unavailable("automation", "too many firings wait for approval"));
  Firing approved = *waiting;
  approved.approved = true;
  approved.deciding = false;
  approved.reason = "approved: " + why_later;
  Note note = note_of(approved.rule_id);
  note.keep(approved);
  write(std::move(note), Kind::request, [this, done, approved](bool kept) {
    Firing* const firing = firings_.find(approved.number);
    if (firing == nullptr) return done(std::nullopt);
    if (kept) {
      *firing = approved;
      try_approved();
    } else {
      firing->deciding = false;
    }
    done(kept ? std::nullopt : std::optional(store_.refusal()));
  });
}

void Engine::try_approved() {
  std::vector<std::uint64_t> waiting;
  for (const Firing& firing : firings_.all()) {
    if (firing.approved && !firing.deciding) waiting.push_back(firing.number);
  }
  std::ranges::sort(waiting);
  for (const std::uint64_t number : waiting) try_approved(number);
  if (waiting.empty() || retrying_ || closed_) return;
  retrying_ = loop_.after(limits_.retry, [this] { try_approved(); });
}

void Engine::try_approved(std::uint64_t number) {
  Firing& firing = *firings_.find(number);
  if (why_not_now(firing)) return;
  const ActiveRule& active = *rules_.find(firing.rule_id);
  if (waits_for_tasks(active)) {
    if (active.rule.when_busy == WhenBusy::restart) cancel_tasks_of(active);
    return;
  }
  firing.deciding = true;
  const Work work = *firing.awaiting;
  run(firing, work, Kind::fact, [this, number](const tl::expected<task::TaskId, Refused>& result) {
    if (result) return has_fired(number, *result);
    Firing* const refused = firings_.find(number);
    if (refused == nullptr) return;
    refused->deciding = false;
    if (!result.error().elsewhere.empty()) {
      refused->awaiting.reset();
      refused->approved = false;
      return hold(*refused, result.error().elsewhere);
    }
    std::string reason = "approved: " + reason_of(result.error().error);
    if (std::exchange(refused->reason, reason) == reason) return;
    Note note = note_of(refused->rule_id);
    note.keep(*refused);
    write(std::move(note), Kind::patient_fact);
  });
}

// Version 0.1 chose it at the approval. The shell gets only what stands in the settings.
void Engine::choose_agents_of_old_work() {
  for (Firing& firing : firings_.all()) {
    if (!firing.awaiting || !firing.awaiting->submission || firing.awaiting->submission->agent) continue;
    task::Submission& submission = *firing.awaiting->submission;
    const ActiveRule* const active = rules_.find(firing.rule_id);
    const bool as_written =
        active != nullptr && active->rule.action.prompt == submission.prompt && fields_in(submission.prompt).empty();
    const tl::expected<std::string, rpc::Error> chosen = queue_.choose_agent(submission);
    submission.agent = chosen && (*chosen != "shell" || as_written) ? *chosen : "claude";
    Note note = note_of(firing.rule_id);
    note.keep(firing);
    write(std::move(note), Kind::patient_fact);
  }
}

void Engine::enable(const std::optional<std::string>& rule_id, bool enabled, const Done& done) {
  // What happened while it was off may still be read from the journal.
  const auto begins = [this, enabled, newest = newest_event()](ActiveRule& active, bool was_on) {
    if (enabled && !was_on) active.since = newest;
    if (!enabled) forget_pending(active);
  };
  bool was_enabled = enabled_;
  if (!rule_id) {
    for (const auto& active : rules_.all()) begins(*active, enabled_);
    if (!enabled) forget_pending_of_absent();
    enabled_ = enabled;
    faults_.clear();
  } else if (ActiveRule* active = rules_.find(*rule_id)) {
    was_enabled = active->enabled();
    begins(*active, was_enabled);
    active->switched = enabled;
  } else {
    return done(unknown("ruleId", "the id of a rule", *rule_id, rules_.ids()));
  }
  Note note = note_of_switch(rule_id);
  if (was_enabled != enabled) tell_switched(note, rule_id, enabled);
  write(std::move(note), Kind::request, [this, rule_id, done](bool kept) {
    if (!kept) {  // it holds already
      owes_switch_ = owes_switch_ || !rule_id;
      save_all_later();
    }
    done(kept ? std::nullopt : std::optional(not_kept()));
  });
  try_approved();
}

void Engine::tell_switched(Note& note, const std::optional<std::string>& rule_id, bool enabled) {
  json::object params{{"enabled", enabled}};
  if (rule_id) params["ruleId"] = *rule_id;
  note.tell("automationChanged", std::move(params));
}

Note Engine::note_of_switch(const std::optional<std::string>& rule_id) {
  if (rule_id) return note_of(*rule_id);
  Note note = note_of_all_rules();
  note.forget(name::old_text);
  note.remember(name::enabled, enabled_ ? "true" : "false");
  return note;
}

}  // namespace duet::automation
