#include <algorithm>
#include <utility>

#include "simulate/model.h"

// What the store must hold: all that was told, and no more.

namespace duet::simulate {

using task::State;
using task::TaskId;

namespace {

constexpr std::size_t many_tasks = 1000;

}  // namespace

// What was told was committed and synced before: the store has all of it, as it was told.
void Model::compare_journal(const task::Journal& journal) {
  take_epoch(journal.epoch());
  if (journal.next() < next_seq()) {
    return fail("event " + std::to_string(next_seq() - 1) + " was told, but the store has only those before " +
                std::to_string(journal.next()));
  }
  for (std::uint64_t seq = journal.oldest(); seq < next_seq(); ++seq) {
    const task::Event& stored = journal.at(seq);
    const task::Event& told = *event(seq);
    if (stored.kind != told.kind || stored.task != told.task || stored.params != told.params) {
      return fail("event " + std::to_string(seq) + " is not stored as it was told");
    }
  }
}

void Model::compare(const std::vector<task::Task>& tasks, bool everything_has_ended) {
  std::set<TaskId> found;
  std::set<std::string_view> prompts;
  for (const task::Task& task : tasks) {
    found.insert(task.id);
    if (!prompts.insert(task.prompt).second) fail("`" + task.prompt + "` is in the store twice");
    const auto asked = asked_.find(task.prompt);
    if (asked == asked_.end()) {
      if (!fired_.contains(task.prompt)) fail(name(task.id) + " is in the store, but nobody asked for it");
    } else if (asked->second.fate == Asked::Fate::refused) {
      fail(name(task.id) + " was refused, and is in the store");
    }
    const Known& known = tasks_[task.id];
    if (known.told != task.progress.state) {
      fail(name(task.id) + " is " + text(task.progress.state) + " in the store, but the last event told of " +
           (known.told ? text(*known.told) : "nothing"));
    }
    if (everything_has_ended && !task::has_ended(task.progress.state)) {
      fail(name(task.id) + " is " + text(task.progress.state) + " and waits for ever");
    }
  }
  const bool is_old = clock_.now().time_since_epoch() > std::chrono::days(20);
  const bool may_forget = wall_jumped_at_ || is_old || fewest_kept_ < many_tasks;
  if (!wall_jumped_at_ && !is_old) check_erased(found);
  for (const auto& [id, known] : tasks_) {
    if (found.contains(id)) continue;
    if (known.told && !may_forget) fail(name(id) + " is gone, though ended tasks are to be kept");
    if (known.acknowledged && !(known.told && task::has_ended(*known.told))) fail(name(id) + " is lost");
    if (known.told && !task::has_ended(*known.told)) fail(name(id) + " was told of, and is lost");
  }
}

// Those that ended first go first, and as many as are to be kept stay. One may outlast others if it was busy when they
// went: the newest, one that others come after, one whose processes had only just ended, or one whose run has to be
// looked at once more because a power cut has brought its record back.
void Model::check_erased(const std::set<TaskId>& kept) {
  const Known* last_erased = nullptr;
  std::size_t ended = 0;
  std::size_t left = 0;
  for (const auto& [id, known] : tasks_) {
    if (!known.told || !task::has_ended(*known.told)) continue;
    ++ended;
    left += kept.contains(id) ? 1 : 0;
    if (!kept.contains(id) && (last_erased == nullptr || known.ended_seq > last_erased->ended_seq))
      last_erased = &known;
  }
  if (left + taken_out_ < std::min(ended, fewest_kept_)) {
    fail("only " + std::to_string(left) + " of " + std::to_string(ended) + " ended tasks are kept");
  }
  if (last_erased == nullptr) return;
  for (const TaskId id : kept) {
    const Known& known = tasks_[id];
    if (!known.told || !task::has_ended(*known.told) || depended_on_.contains(id)) continue;
    const bool was_newest = id >= last_erased->newest_then;
    const bool was_busy = known.ordered && last_erased->ended_at < known.ended_at + std::chrono::minutes(1);
    const bool was_hard_to_end = std::ranges::any_of(
        known.runs, [](const auto& run) { return run.second.suspended || run.second.keeper_killed; });
    const bool came_back = !known.runs.empty() && last_cut_ && *last_cut_ >= known.ended_at;
    if (known.ended_seq < last_erased->ended_seq && !was_newest && !was_busy && !was_hard_to_end && !came_back) {
      return fail(name(id) + " is kept, though one that ended later was erased");
    }
  }
}

// The newest one stays in any case.
void Model::check_kept(std::size_t tasks) {
  if (tasks > kept_ + 1) fail(std::to_string(tasks) + " ended tasks are kept, not " + std::to_string(kept_));
}

void Model::compare_ended(const task::Task& task, const std::vector<RunOutput>& outputs) {
  const Known& known = tasks_[task.id];
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const task::RunId run{task.id, static_cast<std::uint32_t>(i + 1)};
    if (const auto wrong = output_.check_run(run, outputs[i])) {
      fail(name(task.id) + ", attempt " + std::to_string(run.attempt) + ": " + *wrong);
    }
  }
  check_usage(task, known);
  // What a keeper could not write down goes with it.
  const auto last = known.runs.find(known.attempts);
  if (task.progress.state != State::completed || last == known.runs.end() || !last->second.is_witnessed()) return;
  const std::string to_stdout = output_.written({task.id, known.attempts}, task::Stream::out);
  std::string_view end = to_stdout;
  constexpr std::size_t result_bytes = std::size_t{64} << 10U;
  end.remove_prefix(end.size() - std::min(end.size(), result_bytes));
  if (task.result != end) fail("the result of " + name(task.id) + " is not what it wrote");
}

// All attempts together, where a keeper saw the end of each. One that could not be started has used nothing.
void Model::check_usage(const task::Task& task, const Known& known) {
  std::optional<task::Usage> expected;
  for (std::uint32_t attempt = 1; attempt <= known.attempts && known.prompt; ++attempt) {
    const Play play = play_of(*known.prompt, attempt);
    const auto run = known.runs.find(attempt);
    if (run == known.runs.end() && !play.can_start) continue;
    if (run == known.runs.end() || !run->second.is_witnessed()) return;
    if (!expected) expected.emplace();
    expected->cpu += play.used.cpu;
    expected->max_memory = std::max(expected->max_memory, play.used.max_memory);
    expected->output_bytes += output_.written({task.id, attempt}).size();
  }
  if (task.usage == expected) return;
  const auto text = [](const std::optional<task::Usage>& usage) {
    return usage ? std::to_string(usage->cpu.count()) + " us, " + std::to_string(usage->max_memory) + " and " +
                       std::to_string(usage->output_bytes) + " bytes"
                 : "nothing";
  };
  fail(name(task.id) + " is said to have used " + text(task.usage) + ", but used " + text(expected));
}

}  // namespace duet::simulate
