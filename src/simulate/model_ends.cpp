#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include <boost/json/object.hpp>

#include "process/launch.h"
#include "simulate/model.h"

// How a task may change, and how it must have ended.

namespace duet::simulate {

using task::State;
using task::TaskId;

Model::End Model::End::of(State state, const boost::json::object& params) {
  End end{.state = state};
  if (const auto& code = params.at("exitCode"); !code.is_null()) end.exit_code = code.to_number<int>();
  if (const auto& signal = params.at("signal"); !signal.is_null()) end.signal = signal.as_string();
  if (const auto* error = params.if_contains("error")) end.reason = error->at("reason").as_string();
  return end;
}

std::string Model::End::text() const {
  std::string all(task::name_of(state));
  if (!reason.empty()) all += ' ' + reason;
  if (exit_code) all += ", exit code " + std::to_string(*exit_code);
  if (!signal.empty()) all += ", signal " + signal;
  return all;
}

bool Model::Run::has_succeeded() const { return status && WIFEXITED(*status) && WEXITSTATUS(*status) == 0; }

// Along the picture of docs/tasks.md.
void Model::check_step(TaskId id, const Known& known, State to) {
  if (!known.told) {
    if (to != State::queued) fail(name(id) + " was first told of as " + text(to));
    return;
  }
  const State from = *known.told;
  if (task::has_ended(from)) return fail(name(id) + " went from " + text(from) + " to " + text(to));
  if (from == State::running && to == State::running) fail(name(id) + " started while it was running");
  // A power cut may take what the run's record says of its start, and leave what it says of its end.
  const Run* const run = last_run(known);
  const bool is_torn = run != nullptr && run->cut;
  if (from == State::queued && to == State::completed && !is_torn) {
    fail(name(id) + " is completed, but nobody told that it started");
  }
}

bool Model::has_met_limit(const Known& known, const Run* run) {
  return agent_of(known) == limited_agent && run != nullptr && run->status && WIFEXITED(*run->status) &&
         WEXITSTATUS(*run->status) == usage_limit_code;
}

// An attempt counts unless it has met a usage limit.
void Model::check_spared(TaskId id, const Known& known, std::uint32_t before) {
  if (known.spared == before) return;
  const Run* const run = last_run(known);
  if (known.spared != before + 1) return fail(name(id) + " has attempts that do not count, and why is not known");
  if (run != nullptr && run->is_witnessed() && !has_met_limit(known, run)) {
    fail(name(id) + " has an attempt that does not count, but it met no usage limit");
  }
}

// A task is queued again only after an attempt that failed, and while it has attempts left.
void Model::check_retry(TaskId id, const Known& known) {
  const Run* const run = last_run(known);
  if (known.attempts > known.submission->retries.value_or(0) + known.spared)
    fail(name(id) + " is queued again, but has no attempts left");
  if (run == nullptr || !run->is_witnessed()) return;
  if (expected_end(known, *run, End{.reason = "timeout"}).state == State::completed) {
    fail(name(id) + " is queued again, but its last attempt succeeded");
  }
}

void Model::check_end(TaskId id, const Known& known, const End& told) {
  check_time_limit(id, known);
  if (!known.refused_as.empty() && known.refused_as != text(told.state)) {
    fail("a cancel of " + name(id) + " was refused as " + known.refused_as + ", but it is " + text(told.state));
  }
  if (told.state == State::cancelled) return check_cancelled(id, known, told);
  if (known.cancelled) fail("a cancel of " + name(id) + " was acknowledged, but it ended as " + text(told.state));
  if (told.reason == "dependency") return check_failed_dependency(id, known, told);
  const bool has_tries =
      told.state == State::failed && known.attempts <= known.submission->retries.value_or(0) + known.spared;
  if (has_tries && !known.stopped.contains(known.attempts)) {
    fail(name(id) + " failed after " + std::to_string(known.attempts) + " of " +
         std::to_string(known.submission->retries.value_or(0) + 1) + " attempts");
  }
  if (told.reason == "spawn" || told.reason == "lost") return check_unknown_end(id, known, told);
  check_seen_end(id, known, told);
}

void Model::check_cancelled(TaskId id, const Known& known, const End& told) {
  if (!known.cancel_asked) fail(name(id) + " is cancelled, but nobody asked for that");
  for (const auto& tree : living_) {
    if (tree->run.task == id && tree->alive()) fail(name(id) + " is cancelled, but processes of it run");
  }
  const Run* const run = last_run(known);
  const bool was_running = known.told == State::running && run != nullptr && run->is_witnessed();
  if (was_running && !told.has_same_status(expected_end(known, *run, told))) {
    fail(name(id) + " is cancelled, and its main process is said to have ended as " + told.text());
  }
}

void Model::check_failed_dependency(TaskId id, const Known& known, const End& told) {
  const bool has_failed = std::ranges::any_of(after_of(known), [&](TaskId dependency) {
    if (removed_.contains(dependency)) return true;
    const Known& other = tasks_[dependency];
    return other.was_restarted || other.told == State::failed || other.told == State::cancelled;
  });
  const bool is_edited = known.edited_after || known.open_edits > 0;
  if (!has_failed && known.open_edits == 0)
    fail(name(id) + " failed with dependency, but no task that it comes after did");
  const bool has_begun = known.attempts > known.restarted && !is_edited;  // one that is tried again may be edited
  if (has_begun || told.exit_code || !told.signal.empty()) {
    fail(name(id) + " failed with dependency, but is said to have run: " + told.text());
  }
}

// `spawn`: it never began. `lost`: nobody lived to see how it ended.
void Model::check_unknown_end(TaskId id, const Known& known, const End& told) {
  if (told.exit_code || !told.signal.empty()) fail(name(id) + " is said to have ended as " + told.text());
  if (told.reason == "spawn") {
    if (!known.prompt || !play_of(*known.prompt, known.attempts).can_start) return;
    return fail(name(id) + " is said to have no program that can be started, but it has");
  }
  const Run* const run = last_run(known);
  if (run == nullptr || !(run->keeper_killed || run->cut)) {
    return fail(name(id) + " is called lost, but its keeper saw how it ended");
  }
}

// All others are told as the keeper saw them. A task that was ended by a stop of the daemon has failed with `signal`,
// whatever it made of that.
void Model::check_seen_end(TaskId id, const Known& known, const End& told) {
  const Run* const run = last_run(known);
  const bool by_stop = known.stopped.contains(known.attempts) && told.reason == "signal";
  if (run == nullptr || !run->status) {
    if (!by_stop) fail(name(id) + " is said to have ended as " + told.text() + ", but nobody saw that");
    return;
  }
  const End expected = expected_end(known, *run, told);
  if (has_met_limit(known, run) && expected.reason == "exit" && !by_stop) {
    return fail(name(id) + " has met a usage limit, and is not queued again");
  }
  if (by_stop && (told.has_same_status(expected) || !run->is_witnessed())) return;
  if (told != expected) {
    fail(name(id) + " is said to have ended as " + told.text() + ", but ended as " + expected.text());
  }
  if (told.reason == "signal" && !known.cancel_asked && !by_stop) {
    fail(name(id) + " was ended by a signal, and nobody asked for that");
  }
}

const Model::Run* Model::last_run(const Known& known) {
  const auto run = known.runs.find(known.attempts);
  return run == known.runs.end() ? nullptr : &run->second;
}

// Of a run with a status. Whether its time was over is not certain in the very moment of its limit; nor if its keeper
// was suspended then, which may find the process ended when it wakes. Then what was told counts.
Model::End Model::expected_end(const Known& known, const Run& run, const End& told) {
  End end{.state = State::failed};
  if (WIFEXITED(*run.status)) {
    end.exit_code = WEXITSTATUS(*run.status);
    end.reason = "exit";
  } else {
    end.signal = process::signal_name(WTERMSIG(*run.status));
    end.reason = "signal";
  }
  const base::Duration took = run.ended_at - run.began_at;
  const auto limit = known.submission->time_limit;
  const bool may_be_over = limit && took >= *limit;
  const bool is_certain = limit && took != *limit && !run.suspended;
  if (may_be_over && (is_certain || told.reason == "timeout")) {
    end.reason = "timeout";
  } else if (end.exit_code == 0) {
    end = {.state = State::completed, .exit_code = 0};
  }
  return end;
}

// Of a task whose keeper was awake all the time.
void Model::check_time_limit(TaskId id, const Known& known) {
  const Run* const run = last_run(known);
  const auto limit = known.submission->time_limit;
  if (!limit || run == nullptr || !run->is_witnessed() || run->suspended) return;
  if (run->ended_at - run->began_at > *limit + grace + moment) fail(name(id) + " was not ended at its time limit");
}

}  // namespace duet::simulate
