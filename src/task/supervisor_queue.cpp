#include <algorithm>
#include <memory>
#include <utility>

#include "task/refusal.h"
#include "task/submission_check.h"
#include "task/supervisor.h"

// What is done with tasks that do not run: they are held, edited, queued again, removed.

namespace duet::task {
namespace {

template <typename Value>
bool assign(Value& to, const std::optional<Value>& from) {
  if (from) to = *from;
  return from.has_value();
}

std::vector<std::string> names_of(const Supervisor::Edit& edit) {
  std::vector<std::string> names;
  const auto add = [&names](const char* name, bool is_given) {
    if (is_given) names.emplace_back(name);
  };
  add("prompt", edit.prompt.has_value());
  add("priority", edit.priority.has_value());
  add("group", edit.group.has_value());
  add("notBefore", edit.delay.has_value() || edit.not_before.has_value());
  add("after", edit.after.has_value());
  add("labels", edit.labels.has_value());
  return names;
}

}  // namespace

std::vector<std::string> Supervisor::groups() const {
  std::set<std::string> names{default_group};
  for (const auto& [name, group] : settings_.groups) names.insert(name);
  for (std::string& name : queue_.groups()) {
    if (queue_.queued_in_group(name) > 0 || running_in_group(name) > 0) names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

// A name that is misspelt would be a group without a bound.
std::optional<rpc::Error> Supervisor::check_group(const std::string& group) const {
  if (group == default_group || settings_.groups.contains(group)) return std::nullopt;
  if (settings_.untrusted_groups.contains(group)) return untrusted_group(group, settings_.distrust);
  std::vector<std::string> known{default_group};
  for (const auto& [name, settings] : settings_.groups) {
    if (name != default_group) known.push_back(name);
  }
  return unknown_group(group, known);
}

bool Supervisor::may_start_in_group(const std::string& group) const {
  if (gate_.is_paused(group)) return false;
  const auto found = settings_.groups.find(group);
  const bool has_limit = found != settings_.groups.end() && found->second.max_running;
  return !has_limit || running_in_group(group) < *found->second.max_running;
}

// Tasks of an agent that the settings do not have any more wait until they have it again.
bool Supervisor::may_start_for_agent(const std::string& agent) const {
  const Agent* const found = agents_.find(agent);
  if (found == nullptr || gate_.is_held(agent)) return false;
  return !found->max_running || running_for_agent(agent) < *found->max_running;
}

std::size_t Supervisor::running_in_group(std::string_view group) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      runs_, [group](const auto& run) { return !run.second.gone && run.second.task.group == group; }));
}

std::size_t Supervisor::running_for_agent(std::string_view agent) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      runs_, [agent](const auto& run) { return !run.second.gone && run.second.task.agent == agent; }));
}

rpc::Error Supervisor::not_queued(TaskId id) {
  const auto standing = store_.read([id](StoreReader& tasks) { return tasks.standing(id); });
  if (!standing) return standing.error();
  if (!*standing) return unknown_task(to_text(id));
  const State state = (*standing)->state;
  if (state != State::queued) return wrong_state(id, state, "Task not queued", "not-queued");
  const bool is_cancelled = cancelling_.contains(id);
  return is_cancelled ? wrong_state(id, state, "Task is being cancelled", "cancelling")
                      : wrong_state(id, state, "Task is being started", "starting");
}

void Supervisor::when_queued(TaskId id, const std::function<void()>& act,
                             const std::function<void(const rpc::Error&)>& refuse) {
  if (stopping_) return refuse(is_stopping());
  if (is_in_queue(id)) return act();
  // It may be on its way to the disk: into the queue, or to its end.
  store_.after_changes(lifetime_.bind([this, id, act, refuse] {
    if (is_in_queue(id)) return act();
    refuse(not_queued(id));
  }));
}

void Supervisor::set_held(TaskId id, bool held, const Changed& changed) {
  const auto refuse = [changed](const rpc::Error& error) { changed(tl::unexpected(error)); };
  when_queued(
      id, [this, id, held, changed] { write_held(id, held, changed); }, refuse);
}

void Supervisor::write_held(TaskId id, bool held, Changed changed) {
  if (holding_.contains(id)) {
    return store_.after_changes(
        lifetime_.bind([this, id, held, changed = std::move(changed)] { set_held(id, held, changed); }));
  }
  if (queue_.is_blocked(id, Block::held) == held) return changed(false);
  // It does not start while that is on its way.
  queue_.block(id, Block::held);
  holding_.insert(id);
  Change change;
  change.apply = [id, held, task = queue_.find(id).value()](StoreWriter& writer) {
    writer.set_held(id, held);
    tell_change(writer, held ? "taskHeld" : "taskReleased", id, task);
  };
  change.done = [this, id, held, changed = std::move(changed)](bool kept) {
    holding_.erase(id);
    if (kept != held) queue_.unblock(id, Block::held);
    schedule();
    if (kept) return changed(true);
    changed(tl::unexpected(store_.refusal()));
  };
  store_.write(std::move(change));
}

void Supervisor::edit(TaskId id, Edit edit, const FoundTask& edited) {
  const auto refuse = [edited](const rpc::Error& error) { edited(tl::unexpected(error)); };
  when_queued(
      id, [this, id, edit = std::move(edit), edited] { write_edit(id, edit, edited); }, refuse);
}

tl::expected<void, rpc::Error> Supervisor::check_edit(TaskId id, const Edit& edit, const std::string& agent) {
  if (edit.prompt && agents_.find(agent) != nullptr) {
    const auto fits = agents_.choose({.prompt = *edit.prompt, .agent = agent});
    if (!fits) return tl::unexpected(fits.error());
  }
  if (edit.group) {
    if (const auto refusal = check_group(*edit.group)) return tl::unexpected(*refusal);
  }
  if (edit.after) {
    if (const auto refusal = check_dependencies(id, *edit.after)) return tl::unexpected(*refusal);
  }
  return {};
}

std::optional<rpc::Error> Supervisor::check_dependencies(TaskId id, const std::vector<TaskId>& after) {
  if (after.size() > most_dependencies) {
    return rpc::invalid_params("after", "array of at most " + std::to_string(most_dependencies) + " ids", "array");
  }
  const std::unordered_set<TaskId> dependents = queue_.all_dependents(id);
  for (const TaskId dependency : after) {
    if (dependency == id || dependents.contains(dependency)) return dependency_cycle(id, dependency);
    const auto standing = store_.read([=](StoreReader& tasks) { return tasks.standing(dependency); });
    if (!standing) return standing.error();
    if (!*standing) return unknown_task(to_text(dependency));
    const State state = (*standing)->state;
    if (state == State::queued && !queue_.contains(dependency)) {
      // It comes into the queue, or back to it if it cannot be started, and waits then for those it comes after.
      const auto theirs = store_.read([=](StoreReader& tasks) { return tasks.after(dependency); });
      if (!theirs) return theirs.error();
      if (!theirs->empty()) return wrong_state(dependency, state, "Task is being started", "starting");
    }
    if (has_ended(state) && state != State::completed) {
      return rpc::invalid_params("after", "tasks that have not failed",
                                 to_text(dependency) + " (" + std::string(name_of(state)) + ")");
    }
  }
  return std::nullopt;
}

// The task as it will be.
tl::expected<Edited, rpc::Error> Supervisor::edited_task(TaskId id, const Edit& edit) {
  std::optional<Submission> asked;
  Edited edited;
  const auto read = store_.read([&](StoreReader& tasks) {
    if (auto task = tasks.find(id)) edited.task = std::move(*task);
    if (auto active = tasks.find_active(id)) edited.active = std::move(*active);
    asked = from_body(tasks.body(id));
  });
  if (!read) return tl::unexpected(read.error());
  Task& task = edited.task;
  if (assign(task.prompt, edit.prompt)) asked->prompt = task.prompt;
  if (assign(task.priority, edit.priority)) asked->priority = task.priority;
  if (assign(task.group, edit.group)) asked->group = task.group;
  if (assign(task.labels, edit.labels)) asked->labels = task.labels;
  if (assign(edited.active.after, edit.after)) {
    std::ranges::sort(edited.active.after);
    edited.active.after.erase(std::unique(edited.active.after.begin(), edited.active.after.end()),
                              edited.active.after.end());
    asked->after = edited.active.after;
  }
  if (edit.delay || edit.not_before) {
    const bool is_delay = edit.delay && edit.delay->count() > 0;
    asked->delay = edited.active.delay = is_delay ? edit.delay : std::nullopt;
    asked->not_before = edit.not_before;
    task.not_before = is_delay ? std::optional(loop_.clock().utc() + *edit.delay) : edit.not_before;
  }
  Submission shown = *asked;
  agents_.add_defaults(shown, task.agent);
  shown.retries = edited.active.retries;  // the agent's may be others by now
  const boost::json::object before = std::exchange(task.metadata, shown_metadata(shown));
  for (const char* const who : {"by", "cause"}) {
    if (const boost::json::value* asked_by = before.if_contains(who)) task.metadata[who] = *asked_by;
  }
  edited.body = to_body(*asked);
  return edited;
}

// One at a time, so that two of them cannot make a cycle together.
void Supervisor::write_edit(TaskId id, const Edit& edit, FoundTask edited) {
  if (editing_ > 0) {
    return store_.after_changes(
        lifetime_.bind([this, id, edit, edited = std::move(edited)] { this->edit(id, edit, edited); }));
  }
  const QueuedTask queued = queue_.find(id).value();
  const auto checked = check_edit(id, edit, queued.agent);
  if (!checked) return edited(tl::unexpected(checked.error()));
  const auto before = store_.read([id](StoreReader& tasks) { return tasks.find_active(id); });
  tl::expected<Edited, rpc::Error> now = edited_task(id, edit);
  if (!before || !now) return edited(tl::unexpected(before ? now.error() : before.error()));
  if (!*before) return edited(tl::unexpected(not_queued(id)));
  queue_.block(id, Block::edit);
  ++editing_;
  need(now->active.after);
  const auto shared = std::make_shared<const Edited>(std::move(*now));
  Change change{.bytes = 1024 + 2 * shared->body.size()};
  change.apply = [shared, queued, names = names_of(edit)](StoreWriter& writer) {
    writer.edit(*shared);
    tell_change(writer, "taskEdited", shared->task.id, queued, names);
  };
  change.done = [this, id, shared, edit, no_longer_after = (*before)->after, edited = std::move(edited)](bool kept) {
    --editing_;
    queue_.unblock(id, Block::edit);
    fail_after_edit(id, kept && edit.after);
    if (kept) edit_is_on_disk(*shared, edit, no_longer_after);
    need_no_more(shared->active.after);
    schedule();
    edited(kept ? find(id) : tl::unexpected(store_.refusal()));
  };
  store_.write(std::move(change));
}

// One that it came after has failed meanwhile.
void Supervisor::fail_after_edit(TaskId id, bool comes_after_others) {
  const auto failing = failing_.extract(id);
  if (failing && !comes_after_others) fail_queued(id, failing.mapped());
}

void Supervisor::edit_is_on_disk(const Edited& edited, const Edit& edit, const std::vector<TaskId>& no_longer_after) {
  const TaskId id = edited.task.id;
  if (!queue_.contains(id)) return;
  queue_.change(id, edited.task.priority, edited.task.group);
  if (edit.delay || edit.not_before) {
    wakes_.forget(id, Block::delay);
    queue_.unblock(id, Block::delay);
    delay(id, edited.active.delay, edited.task.not_before);
  }
  if (!edit.after) return;
  for (const TaskId dependency : no_longer_after) queue_.stop_waiting_for(id, dependency);
  queue_.unblock(id, Block::reading);
  wait_for_dependencies(id, edited.active.after);
}

void Supervisor::restart(TaskId id, Submitted submitted, std::string by) {
  std::optional<Submission> again;
  std::optional<Task> task;
  const auto read = store_.read([&](StoreReader& tasks) {
    task = tasks.find(id);
    if (!task) return;
    again = from_body(tasks.body(id));
    again->agent = task->agent;
    again->priority = task->priority;
    if (!check_group(task->group)) again->group = task->group;
    again->after = tasks.after(id);
  });
  if (!read) return submitted(tl::unexpected(read.error()));
  if (!again) return submitted(tl::unexpected(unknown_task(to_text(id))));
  const std::optional<TaskId> missing = missing_dependency(again->after);
  if (missing) return submitted(tl::unexpected(unknown_task(to_text(*missing))));
  again->key.clear();
  again->delay.reset();
  again->not_before.reset();
  again->metadata.erase("automation");  // it was not a rule that asked for this one
  again->metadata["restartOf"] = to_text(id);
  again->by = std::move(by);
  submit(std::move(*again), std::move(submitted));
}

void Supervisor::restart_in_place(TaskId id, Submitted submitted) {
  if (stopping_) return submitted(tl::unexpected(is_stopping()));
  // What is on its way to the disk may be its end, or the end of its record.
  store_.after_changes(lifetime_.bind([this, id, submitted = std::move(submitted)] {
    const tl::expected<Task, rpc::Error> task = find(id);
    if (!task) return submitted(tl::unexpected(task.error()));
    const State state = task->progress.state;
    const bool is_leaving = leaving_.contains(id) || retention_.is_removing(id);
    if (is_leaving) return submitted(tl::unexpected(unknown_task(to_text(id))));
    if (!has_ended(state) || restarting_.contains(id)) {
      return submitted(tl::unexpected(wrong_state(id, state, "Task has not ended", "not-ended")));
    }
    const auto after = store_.read([id](StoreReader& tasks) { return tasks.after(id); });
    if (!after) return submitted(tl::unexpected(after.error()));
    const std::optional<TaskId> missing = missing_dependency(*after);
    if (missing) return submitted(tl::unexpected(unknown_task(to_text(*missing))));
    const Intake::Capacity room{static_cast<std::size_t>(counts_[0]) + restarting_.size(), settings_.queue_capacity};
    if (intake_.is_full(room)) return submitted(tl::unexpected(queue_full(room.capacity)));
    requeue(*task, *after, submitted);
  }));
}

// One that is gone: nobody knows any more whether it succeeded.
std::optional<TaskId> Supervisor::missing_dependency(const std::vector<TaskId>& after) {
  for (const TaskId id : after) {
    const auto standing = store_.read([id](StoreReader& tasks) { return tasks.standing(id); });
    if (!standing || !*standing || leaving_.contains(id) || retention_.is_removing(id)) return id;
  }
  return std::nullopt;
}

void Supervisor::need_no_more(const std::vector<TaskId>& ids) {
  for (const TaskId id : ids) needed_.erase(needed_.find(id));
}

void Supervisor::requeue(const Task& task, const std::vector<TaskId>& after, Submitted submitted) {
  const TaskId id = task.id;
  const std::uint32_t attempts = task.progress.attempts;
  restarting_.insert(id);
  need(after);
  Transition again{.id = id, .agent = task.agent, .from = task.progress.state};
  again.to = {.attempts = attempts, .spared = attempts};
  again.also = [id](StoreWriter& writer) {
    writer.erase_result(id);
    writer.set_held(id, false);
    writer.forget_delay(id);
  };
  record(std::move(again), Change::Kind::request, [this, id, after, submitted = std::move(submitted)](bool kept) {
    restarting_.erase(id);
    if (kept) {
      load_again(id, after);
      wait_again_for(id);
      schedule();
      return submitted(Accepted{id, State::queued});
    }
    need_no_more(after);
    submitted(tl::unexpected(store_.refusal()));
  });
}

// Those that come after it and have not begun were past it; so they stand on disk, where the next daemon reads it.
void Supervisor::wait_again_for(TaskId id) {
  const auto dependents = store_.read([id](StoreReader& tasks) { return tasks.dependents(id); });
  if (!dependents) {
    return loop_.after(std::chrono::seconds(1), lifetime_.bind([this, id] { wait_again_for(id); })).detach();
  }
  for (const TaskId dependent : *dependents) {
    queue_.stop_waiting_for(dependent, id);
    queue_.wait_for(dependent, id);
  }
}

}  // namespace duet::task
