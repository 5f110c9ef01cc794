#include <algorithm>
#include <iterator>
#include <utility>

#include <boost/json/array.hpp>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/value.h"
#include "task/postgres/postgres_queue.h"
#include "task/postgres/records.h"
#include "task/refusal.h"
#include "task/submission_check.h"

// What is changed in the queue, and in tasks that are in it or were.

namespace duet::task::postgres {
namespace {

namespace json = boost::json;

constexpr std::string_view paused_name = "cluster/paused";  // in this daemon's own store

State state_in(const json::object& answer) { return static_cast<State>(number_in(answer, "state")); }

rpc::Error not_queued(TaskId id, const json::object& answer) {
  const State state = state_in(answer);
  if (state == State::queued) return wrong_state(id, state, "Task is being started", "starting");
  return wrong_state(id, state, "Task not queued", "not-queued");
}

std::vector<TaskId> ids_in(const json::object& answer, std::string_view name) {
  std::vector<TaskId> ids;
  for (const json::value& id : array_in(answer, name)) ids.push_back(id.to_number<TaskId>());
  return ids;
}

// Of what an edit changes metadata show only this; who has asked for the task, and why, stays.
std::string metadata_after(const std::string& before, const std::vector<TaskId>& after) {
  json::object metadata = rpc::is_valid_json(before) ? rpc::parse_value(before).as_object() : json::object();
  metadata.erase("after");
  json::array ids;
  for (const TaskId id : after) ids.emplace_back(to_text(id));
  if (!ids.empty()) metadata["after"] = std::move(ids);
  return rpc::to_text(metadata);
}

}  // namespace

void PostgresQueue::cancel(TaskId id, Cancelled cancelled) {
  alter("cancel_v1", {argument_of(id)}, [this, id, cancelled](const FoundObject& answer, bool again) {
    if (!answer) return cancelled(tl::unexpected(answer.error()));
    const std::string outcome = text_in(*answer, "outcome");
    if (outcome == "unknown") return cancelled(tl::unexpected(unknown_task(to_text(id))));
    const bool is_done = again && state_in(*answer) == State::cancelled;
    if (outcome == "ended" && !is_done) return cancelled(tl::unexpected(not_cancellable(id, state_in(*answer))));
    const std::int64_t worker = number_in(*answer, "worker");
    if (outcome == "cancelling" && worker == membership_.worker()) {
      membership_.beat_soon();  // which brings it
    } else if (outcome == "cancelling" && worker != 0) {
      membership_.call(Line::Way::watch, "nudge_v1", {argument_of(worker), "cancel"}, [](const Answer&) {});
    }
    cancelled({});
  });
}

void PostgresQueue::set_held(TaskId id, bool held, const Changed& changed) {
  if (stopping_) return changed(tl::unexpected(is_stopping()));
  alter("hold_v1", {argument_of(id), argument_of(held)},
        [this, id, held, changed](const FoundObject& answer, bool again) {
          if (!answer) return changed(tl::unexpected(answer.error()));
          const std::string outcome = text_in(*answer, "outcome");
          if (outcome == "unknown") return changed(tl::unexpected(unknown_task(to_text(id))));
          const bool is_done = again && !held;  // once released it may start at once
          if (outcome == "not-queued" && !is_done) return changed(tl::unexpected(not_queued(id, *answer)));
          if (flag_in(*answer, "ready")) membership_.wake(static_cast<std::int32_t>(number_in(*answer, "lane")), 1);
          changed(again || outcome == "changed");
        });
}

void PostgresQueue::edit(TaskId id, Edit edit, const FoundTask& edited) {
  if (stopping_) return edited(tl::unexpected(is_stopping()));
  edit_as_it_is(id, edit, edited, 10);
}

// Somebody else may edit it meanwhile: then it is read and changed once more.
void PostgresQueue::edit_as_it_is(TaskId id, const Edit& edit, const FoundTask& edited, int tries) {
  ask("read_request_v1", {argument_of(id)},
      [this, id, edit, edited, tries](const tl::expected<Object, rpc::Error>& request) {
        if (!request) return edited(tl::unexpected(request.error()));
        if (!request->contains("body")) return edited(tl::unexpected(unknown_task(to_text(id))));
        edit_queued(id, edit, *request, edited, tries);
      });
}

// The body is changed with the rest: it is what runs, and what a restart asks for.
void PostgresQueue::edit_queued(TaskId id, const Edit& edit, const Object& request, const FoundTask& edited,
                                int tries) {
  Submission submission = from_body(text_in(request, "body"));
  Object change;
  json::array names;
  const auto note = [&](const char* name) { names.emplace_back(name); };
  if (edit.prompt) {
    submission.prompt = *edit.prompt;
    change["prompt"] = prompt_text(*edit.prompt);
    note("prompt");
  }
  if (edit.priority) {
    submission.priority = edit.priority;
    change["priority"] = *edit.priority;
    note("priority");
  }
  if (edit.group) {
    if (const auto refusal = check_group(*edit.group)) return edited(tl::unexpected(*refusal));
    submission.group = *edit.group;
    change["group"] = *edit.group;
    note("group");
  }
  if (edit.delay || edit.not_before) {
    submission.delay = edit.delay && edit.delay->count() > 0 ? edit.delay : std::nullopt;
    submission.not_before = edit.not_before;
    if (edit.delay) change["delay"] = edit.delay->count();
    if (edit.not_before) change["notBefore"] = base::milliseconds_of(*edit.not_before);
    note("notBefore");
  }
  if (edit.after) {
    submission.after = *edit.after;
    if (auto refusal = check_submission(submission)) return edited(tl::unexpected(*refusal));
    json::array after;
    for (const TaskId dependency : submission.after) after.emplace_back(dependency);
    change["after"] = std::move(after);
    change["metadata"] = metadata_after(text_in(request, "metadata"), submission.after);
    note("after");
  }
  if (edit.labels) {
    submission.labels = *edit.labels;
    change["labels"] = rpc::to_text(to_json(*edit.labels));
    note("labels");
  }
  Submission checked = submission;
  checked.agent = text_in(request, "agent");
  if (edit.prompt && agents_.find(*checked.agent) != nullptr) {  // what another worker's would say is checked there
    if (const auto agent = choose_agent(checked); !agent) return edited(tl::unexpected(agent.error()));
  }
  change["body"] = to_body(submission);
  change["changed"] = std::move(names);
  change["was"] = text_in(request, "version");
  alter("edit_v1", {argument_of(id), rpc::to_text(change)},
        [this, id, edit, edited, tries, body = text_in(change, "body")](const FoundObject& answer, bool again) {
          if (!answer) return edited(tl::unexpected(answer.error()));
          const std::string outcome = text_in(*answer, "outcome");
          if (outcome == "other") return edit_again(id, edit, again ? body : std::string(), edited, tries);
          if (outcome == "unknown") return edited(tl::unexpected(unknown_task(to_text(id))));
          if (outcome == "not-queued" && again) return find_edited(id, body, not_queued(id, *answer), edited);
          if (outcome == "not-queued") return edited(tl::unexpected(not_queued(id, *answer)));
          if (outcome == "missing") {
            return edited(tl::unexpected(unknown_task(to_text(static_cast<TaskId>(number_in(*answer, "missing"))))));
          }
          if (outcome == "cycle") {
            return edited(tl::unexpected(dependency_cycle(id, static_cast<TaskId>(number_in(*answer, "cycle")))));
          }
          if (outcome == "failed") {
            return edited(tl::unexpected(
                rpc::invalid_params("after", "tasks that have not failed",
                                    to_text(static_cast<TaskId>(number_in(*answer, "failed"))) + " (failed)")));
          }
          if (flag_in(*answer, "ready")) membership_.wake(static_cast<std::int32_t>(number_in(*answer, "lane")), 1);
          if (edit.delay) membership_.sweep_in(*edit.delay);
          if (edit.not_before) membership_.sweep_when(*edit.not_before);
          find(id, edited);
        });
}

// It was started while we asked again: as we have changed it, or as it was before.
void PostgresQueue::find_edited(TaskId id, const std::string& body, const rpc::Error& refusal,
                                const FoundTask& edited) {
  ask("read_request_v1", {argument_of(id)}, [this, id, body, refusal, edited](const FoundObject& request) {
    if (!request) return edited(tl::unexpected(request.error()));
    if (text_in(*request, "body") != body) return edited(tl::unexpected(refusal));
    find(id, edited);
  });
}

// Somebody has edited it since it was read; or we ourselves, when we asked again: then it has that body.
void PostgresQueue::edit_again(TaskId id, const Edit& edit, const std::string& body, const FoundTask& edited,
                               int tries) {
  if (tries <= 1) return edited(tl::unexpected(unavailable("store", "others edit it all the time")));
  ask("read_request_v1", {argument_of(id)}, [this, id, edit, body, edited, tries](const FoundObject& request) {
    if (request && !body.empty() && text_in(*request, "body") == body) return find(id, edited);
    edit_as_it_is(id, edit, edited, tries - 1);
  });
}

void PostgresQueue::restart(TaskId id, Submitted submitted, std::string by) {
  if (stopping_) return submitted(tl::unexpected(is_stopping()));
  ask("read_request_v1", {argument_of(id)},
      [this, id, submitted, by = std::move(by)](const tl::expected<Object, rpc::Error>& request) {
        if (!request) return submitted(tl::unexpected(request.error()));
        if (!request->contains("body")) return submitted(tl::unexpected(unknown_task(to_text(id))));
        if (flag_in(*request, "hasEnv")) return submitted(tl::unexpected(env_is_gone(id)));
        Submission submission = from_body(text_in(*request, "body"));
        submission.agent = text_in(*request, "agent");
        if (const auto priority = optional_in(*request, "priority")) submission.priority = *priority;
        if (const std::string group = text_in(*request, "group"); !check_group(group)) submission.group = group;
        submission.after = ids_in(*request, "after");
        submission.key.clear();
        submission.delay.reset();
        submission.not_before.reset();
        submission.metadata.erase("automation");  // it was not a rule that asked for this one
        submission.metadata["restartOf"] = to_text(id);
        submission.by = by;
        submit(std::move(submission), submitted, {});
      });
}

void PostgresQueue::restart_in_place(TaskId id, Submitted submitted) {
  if (stopping_) return submitted(tl::unexpected(is_stopping()));
  // Not asked again: by then it may have run and ended once more.
  once("requeue_v1", {argument_of(id)}, [this, id, submitted](const FoundObject& answer) {
    if (!answer) return submitted(tl::unexpected(answer.error()));
    const std::string outcome = text_in(*answer, "outcome");
    if (outcome == "unknown") return submitted(tl::unexpected(unknown_task(to_text(id))));
    if (outcome == "env-gone") return submitted(tl::unexpected(env_is_gone(id)));
    if (outcome == "full")
      return submitted(tl::unexpected(queue_full(static_cast<std::size_t>(number_in(*answer, "capacity")))));
    if (outcome == "missing") {
      return submitted(tl::unexpected(unknown_task(to_text(static_cast<TaskId>(number_in(*answer, "missing"))))));
    }
    if (outcome == "not-ended") {
      return submitted(tl::unexpected(wrong_state(id, state_in(*answer), "Task has not ended", "not-ended")));
    }
    membership_.wake(static_cast<std::int32_t>(number_in(*answer, "lane")), 1);
    submitted(Accepted{id, state_in(*answer)});
  });
}

void PostgresQueue::remove(std::vector<TaskId> ids, Removed removed) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.empty()) return removed(Removal{});
  remove_some(std::move(ids), {}, {}, {}, std::move(removed));
}

void PostgresQueue::clean(std::optional<State> state, std::optional<std::chrono::milliseconds> older, Removed removed) {
  remove_some({}, state, older, {}, std::move(removed));
}

// A thousand at a time; of all that have ended, those that stay are told once.
void PostgresQueue::remove_some(std::vector<TaskId> ids, std::optional<State> state,
                                std::optional<std::chrono::milliseconds> older, Removal removal, Removed removed) {
  constexpr std::size_t at_once = 1000;
  if (stopping_) return removed(tl::unexpected(is_stopping()));
  const bool is_clean = ids.empty();
  std::vector<TaskId> some(ids.end() - static_cast<std::ptrdiff_t>(std::min(ids.size(), at_once)), ids.end());
  ids.resize(ids.size() - some.size());
  std::vector<std::int64_t> numbers(some.begin(), some.end());
  alter(
      "remove_v1",
      {is_clean ? Argument() : Argument(array_of(numbers)), state ? argument_of(static_cast<int>(*state)) : Argument(),
       older ? argument_of(older->count()) : Argument(), "request"},
      [this, ids = std::move(ids), is_clean, state, older, removal = std::move(removal), removed = std::move(removed)](
          const FoundObject& answer, bool again) mutable {
        if (!answer) return removed(tl::unexpected(answer.error()));
        take_removal(*answer, again, removal);
        if (again || !removal.removed.empty()) tidy_in(std::chrono::seconds(1));  // their outputs here
        if (is_clean && again) {
          constexpr const char* why = "an answer was lost: tasks were removed, and nobody knows how many";
          return removed(tl::unexpected(error_of(Fault{Fault::Kind::unknown, "", why})));
        }
        const bool has_more =
            is_clean ? flag_in(*answer, "more") && !array_in(*answer, "removed").empty() : !ids.empty();
        if (has_more) return remove_some(std::move(ids), state, older, std::move(removal), std::move(removed));
        std::ranges::sort(removal.removed);
        std::ranges::sort(removal.kept, {}, &Removal::Kept::id);
        const auto is_same = [](const Removal::Kept& one, const Removal::Kept& other) { return one.id == other.id; };
        removal.kept.erase(std::unique(removal.kept.begin(), removal.kept.end(), is_same), removal.kept.end());
        removed(removal);
      });
}

// What is not there when it is asked for again was removed the first time.
void PostgresQueue::take_removal(const Object& answer, bool again, Removal& removal) {
  for (const TaskId id : ids_in(answer, "removed")) removal.removed.push_back(id);
  for (const json::value& each : array_in(answer, "kept")) {
    const Object& told = each.as_object();
    Removal::Kept kept{.id = static_cast<TaskId>(number_in(told, "id")), .reason = text_in(told, "reason")};
    if (again && kept.reason == "unknown") {
      removal.removed.push_back(kept.id);
      continue;
    }
    if (const auto by = optional_in(told, "by"); by && kept.reason == "needed") kept.by = static_cast<TaskId>(*by);
    kept.text = kept.reason == "unknown"     ? "there is no such task"
                : kept.reason == "not-ended" ? "it has not ended"
                : kept.reason == "needed"    ? (kept.by ? to_text(*kept.by) : "another task") + " comes after it"
                                             : "it is looked at";
    removal.kept.push_back(std::move(kept));
  }
}

// One that only other daemons have may be paused, too, if it has tasks or is paused.
void PostgresQueue::set_paused(const std::optional<std::string>& group, bool paused, const Paused& done) {
  if (stopping_) return done(tl::unexpected(is_stopping()));
  const auto refusal = group ? check_group(*group) : std::nullopt;
  if (!refusal) return pause_now(group, paused, done);
  look([this, group, paused, done, refusal](const tl::expected<Standing, rpc::Error>& standing) {
    if (!standing) return done(tl::unexpected(standing.error()));
    if (!standing->groups.contains(*group)) return done(tl::unexpected(*refusal));
    pause_now(group, paused, done);
  });
}

void PostgresQueue::pause_now(const std::optional<std::string>& group, bool paused, const Paused& done) {
  alter("pause_v1", {group ? Argument(*group) : Argument(), argument_of(paused)},
        [this, done](const FoundObject& answer, bool again) {
          if (!answer) return done(tl::unexpected(answer.error()));
          attempts_.look(false);
          look([done,
                changed = again || flag_in(*answer, "changed")](const tl::expected<Standing, rpc::Error>& standing) {
            if (!standing) return done(tl::unexpected(standing.error()));
            Pause pause{.changed = changed};
            for (const auto& [name, each] : standing->groups) {
              if (each.paused) pause.groups.push_back(name);
            }
            done(pause);
          });
        });
}

void PostgresQueue::recall_pauses(StoreReader& reader) {
  const std::string names = reader.recall(paused_name).value_or("");
  if (!rpc::is_valid_json(names)) return;
  told_pauses_.emplace();
  const json::value told = rpc::parse_value(names);
  for (const json::value& name : told.as_array()) told_pauses_->emplace(name.as_string());
}

// What was said of a group by hand counts until the settings say something new of it, also if they were changed while
// no daemon ran here. One after the other: each is remembered when the database has it.
void PostgresQueue::take_pauses() {
  if (telling_pauses_ || stopping_ || !membership_.is_joined()) return;
  std::set<std::string> now;
  for (const auto& [name, group] : settings_.groups) {
    if (group.paused) now.insert(name);
  }
  if (!told_pauses_) return remember_pauses(std::move(now));  // it is as new here as the rest of the settings
  std::vector<std::string> changed;
  std::ranges::set_symmetric_difference(now, *told_pauses_, std::back_inserter(changed));
  if (changed.empty()) return;
  const std::string& group = changed.front();
  alter("pause_v1", {group, argument_of(now.contains(group)), argument_of(true)},
        telling_pauses_.until([this, group, is_paused = now.contains(group)](const FoundObject& answer, bool) {
          if (!answer) {
            pauses_timer_ = loop_.after(std::chrono::seconds(2), [this] { take_pauses(); });
            return;
          }
          std::set<std::string> told = *told_pauses_;
          told.erase(group);
          if (is_paused) told.insert(group);
          remember_pauses(std::move(told));
          attempts_.look(false);
          take_pauses();
        }));
}

void PostgresQueue::remember_pauses(std::set<std::string> paused) {
  const std::string names = rpc::to_text(json::array(paused.begin(), paused.end()));
  told_pauses_ = std::move(paused);
  store_.write({.apply = [names](StoreWriter& writer) { writer.remember(paused_name, names); },
                .kind = Change::Kind::patient_fact});
}

void PostgresQueue::release_agent(const std::string& agent, const Changed& released) {
  if (stopping_) return released(tl::unexpected(is_stopping()));
  if (agent.find('\0') != std::string::npos) return released(tl::unexpected(agents_.unknown(agent, "name")));
  alter("release_v1", {agent}, [this, agent, released](const FoundObject& answer, bool again) {
    if (!answer) return released(tl::unexpected(answer.error()));
    const bool was_held = again || flag_in(*answer, "released");
    const bool is_known = agents_.find(agent) != nullptr || membership_.is_agent_known(agent);
    if (!was_held && !is_known) return released(tl::unexpected(agents_.unknown(agent, "name")));
    attempts_.look(false);
    released(was_held);
  });
}

}  // namespace duet::task::postgres
