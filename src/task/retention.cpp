#include "task/retention.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "duet/rpc/object_text.h"
#include "task/handles.h"
#include "task/output.h"

namespace duet::task {
namespace {

constexpr std::size_t step = 20;  // tasks at a time
constexpr std::chrono::hours between_looks{1};
constexpr std::chrono::minutes tolerance{1};  // between the two clocks
constexpr std::size_t most_days = 36'500;
constexpr std::size_t most_passed_over = 500;  // of those that are to stay, at a time

}  // namespace

void erase_tasks(StoreWriter& writer, const std::vector<EndedTask>& tasks, std::string_view by) {
  std::string names;
  for (const EndedTask& task : tasks) {
    writer.erase(task.id);
    Handles::forget(writer, task.id);
    names += (names.empty() ? "[\"" : ",\"") + to_text(task.id) + '"';
  }
  rpc::ObjectText params;
  params.add_json("taskIds", names + "]").add("by", by);
  writer.tell("tasksRemoved", 0, std::move(params));
}

Retention::Retention(transport::Loop& loop, base::Log& log, Store& store, StateCounts& counts, int outputs,
                     Limits limits, std::function<bool(TaskId)> is_busy, std::function<void(RunId)> remove_output)
    : loop_(loop),
      log_(log),
      store_(store),
      counts_(counts),
      outputs_(outputs),
      limits_(limits),
      is_busy_(std::move(is_busy)),
      remove_output_(std::move(remove_output)) {}

void Retention::set_limits(Limits limits) {
  limits_ = limits;
  look_from_ = 0;
  look();
}

void Retention::begin() {
  has_begun_ = true;
  look();
}

void Retention::look() {
  if (!timer_) wait_an_hour();
  if (removing_ || !has_begun_) return;
  const tl::expected<std::vector<EndedTask>, rpc::Error> old = find_old();
  if (!old) return log_.warn("old tasks cannot be looked for", {{"reason", old.error().what()}});
  if (!old->empty()) return remove(*old);
  if (is_cut_short_) next_look_ = loop_.deferred([this] { look(); });
  if (output_bytes_ > limits_.output_bytes) let_go_of_output();
}

void Retention::output_added(RunId run) {
  output_bytes_ += output_size(outputs_, run);
  if (output_bytes_ > limits_.output_bytes) look();
}

// A clock on the wall that jumps makes nothing old: in the last hour it must have gone as the other one.
void Retention::wait_an_hour() {
  timer_ = loop_.after(between_looks, [this, utc = loop_.clock().utc(), time = loop_.now()] {
    const auto difference = (loop_.clock().utc() - utc) - (loop_.now() - time);
    const bool is_steady = difference > -tolerance && difference < tolerance;
    oldest_kept_ = is_steady
                       ? loop_.clock().utc() - std::chrono::days(static_cast<int>(std::min(limits_.days, most_days)))
                       : base::UtcTime::min();
    look_from_ = 0;
    begin();
  });
}

tl::expected<std::vector<EndedTask>, rpc::Error> Retention::find_old() {
  const auto ended = static_cast<std::size_t>(counts_[2] + counts_[3] + counts_[4]);
  const std::size_t too_many = ended > limits_.tasks ? ended - limits_.tasks : 0;
  is_cut_short_ = false;
  return store_.read([&](StoreReader& tasks) {
    const std::size_t most = too_many > 0 ? std::min(too_many, step) : step;
    const TaskId newest = tasks.newest();
    const base::UtcTime promised = loop_.clock().utc() - Handles::kept_after_end;
    std::vector<EndedTask> old;
    std::size_t seen = 0;
    std::size_t passed_over = 0;
    tasks.first_ended(look_from_, [&](const EndedTask& task) {
      // One that ended after another is not older, whatever the clock was set to then.
      if (too_many == 0 && task.at >= oldest_kept_) return false;
      const bool is_promised = task.at >= promised && Handles::has_one(tasks, task.id);
      if (is_promised && ++passed_over <= most_passed_over) return true;
      if (is_promised) {
        is_cut_short_ = seen == 0;  // else one that is busy would be forgotten, and another go in its place
        if (is_cut_short_) look_from_ = task.end_seq;
        return false;
      }
      if (task.id != newest && !is_busy_(task.id)) old.push_back(task);
      return ++seen < most;
    });
    return old;
  });
}

void Retention::remove(const std::vector<EndedTask>& old) {
  removing_ = true;
  for (const EndedTask& task : old) leaving_.insert(task.id);
  Change change{.bytes = 512 + old.size() * sizeof(TaskId)};
  change.apply = [old](StoreWriter& writer) { erase_tasks(writer, old, "retention"); };
  change.done = [this, old](bool kept) {
    removing_ = false;
    leaving_.clear();
    if (!kept) return;
    for (const EndedTask& task : old) {
      --counts_.at(static_cast<std::size_t>(task.state));
      remove_outputs(task);
    }
    look();
  };
  store_.write(std::move(change));
}

// What cannot be removed now still takes its room.
void Retention::remove_outputs(const EndedTask& task) {
  for (RunId run{task.id, 1}; run.attempt <= task.attempts; ++run.attempt) {
    const std::uint64_t before = output_size(outputs_, run);
    remove_output_(run);
    output_bytes_ -= std::min(output_bytes_, before - std::min(before, output_size(outputs_, run)));
  }
}

tl::expected<std::vector<EndedTask>, rpc::Error> Retention::find_output() {
  return store_.read([&](StoreReader& tasks) {
    std::vector<EndedTask> first;
    std::uint64_t room = 0;
    const std::uint64_t wanted = output_bytes_ - limits_.output_bytes;
    bool reached = false;
    tasks.first_with_output(output_from_, [&](const EndedTask& task) {
      if (!std::exchange(reached, true)) output_from_ = task.end_seq;
      if (is_busy_(task.id)) return true;
      first.push_back(task);
      for (RunId run{task.id, 1}; run.attempt <= task.attempts; ++run.attempt) room += output_size(outputs_, run);
      return room < wanted && first.size() < step;
    });
    return first;
  });
}

// One that cannot be opened must not keep all others; what its file takes is near enough.
std::uint64_t Retention::written_by(RunId run) const {
  try {
    return read_output(outputs_, run, 0, 0).total;
  } catch (const std::system_error&) {
    return output_size(outputs_, run);
  }
}

GoneOutput Retention::output_of(const EndedTask& task) const {
  GoneOutput gone{.attempts = task.attempts};
  for (RunId run{task.id, task.output_gone + 1}; run.attempt <= task.attempts; ++run.attempt) {
    gone.bytes += written_by(run);
  }
  return gone;
}

// The records first: a file that is gone and is not said to be would look like a task that wrote nothing.
void Retention::let_go_of_output() {
  const auto first = find_output();
  if (!first) return log_.warn("outputs cannot be looked for", {{"reason", first.error().what()}});
  if (first->empty()) return;
  std::vector<GoneOutput> gone;
  for (const EndedTask& task : *first) gone.push_back(output_of(task));
  removing_ = true;
  Change change{.bytes = 512 + first->size() * sizeof(EndedTask)};
  change.apply = [tasks = *first, gone](StoreWriter& writer) {
    for (std::size_t i = 0; i < tasks.size(); ++i) writer.let_go_of_output(tasks[i].id, gone[i]);
  };
  change.done = [this, tasks = *first](bool kept) {
    removing_ = false;
    if (!kept) return;
    for (const EndedTask& task : tasks) remove_outputs(task);
    look();
  };
  store_.write(std::move(change));
}

}  // namespace duet::task
