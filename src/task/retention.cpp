#include "task/retention.h"

#include <algorithm>
#include <chrono>
#include <system_error>

namespace duet::task {
namespace {

constexpr std::size_t step = 20;  // tasks at a time
constexpr std::chrono::hours between_looks{1};
constexpr std::chrono::minutes tolerance{1};  // between the two clocks
constexpr std::size_t most_days = 36'500;

}  // namespace

Retention::Retention(transport::Loop& loop, base::Log& log, Store& store, StateCounts& counts, Limits limits,
                     std::function<bool(TaskId)> is_busy, std::function<void(RunId)> remove_output)
    : loop_(loop),
      log_(log),
      store_(store),
      counts_(counts),
      limits_(limits),
      is_busy_(std::move(is_busy)),
      remove_output_(std::move(remove_output)) {}

void Retention::set_limits(Limits limits) {
  limits_ = limits;
  look();
}

void Retention::look() {
  if (removing_) return;
  if (!timer_) wait_an_hour();
  const tl::expected<std::vector<EndedTask>, rpc::Error> old = find_old();
  if (!old) return log_.warn("old tasks cannot be looked for", {{"reason", old.error().what()}});
  if (!old->empty()) remove(*old);
}

// A clock on the wall that jumps makes nothing old: in the last hour it must have gone as the other one.
void Retention::wait_an_hour() {
  timer_ = loop_.after(between_looks, [this, utc = loop_.clock().utc(), time = loop_.now()] {
    const auto difference = (loop_.clock().utc() - utc) - (loop_.now() - time);
    const bool is_steady = difference > -tolerance && difference < tolerance;
    oldest_kept_ = is_steady
                       ? loop_.clock().utc() - std::chrono::days(static_cast<int>(std::min(limits_.days, most_days)))
                       : base::UtcTime::min();
    look();
  });
}

tl::expected<std::vector<EndedTask>, rpc::Error> Retention::find_old() const {
  const auto ended = static_cast<std::size_t>(counts_[2] + counts_[3] + counts_[4]);
  const std::size_t too_many = ended > limits_.tasks ? ended - limits_.tasks : 0;
  return store_.read([&](StoreReader& tasks) {
    const std::size_t most = too_many > 0 ? std::min(too_many, step) : step;
    const TaskId newest = tasks.newest();
    std::vector<EndedTask> old;
    std::size_t seen = 0;
    tasks.first_ended([&](const EndedTask& task) {
      // One that ended after another is not older, whatever the clock was set to then.
      if (too_many == 0 && task.at >= oldest_kept_) return false;
      if (task.id != newest && !is_busy_(task.id)) old.push_back(task);
      return ++seen < most;
    });
    return old;
  });
}

void Retention::remove(const std::vector<EndedTask>& old) {
  removing_ = true;
  Change change{.bytes = 512 + old.size() * sizeof(TaskId)};
  change.apply = [old](StoreWriter& writer) {
    for (const EndedTask& task : old) writer.erase(task.id);
  };
  change.done = [this, old](bool kept) {
    removing_ = false;
    if (!kept) return;
    for (const EndedTask& task : old) {
      --counts_.at(static_cast<std::size_t>(task.state));
      for (RunId run{task.id, 1}; run.attempt <= task.attempts; ++run.attempt) remove_output_(run);
    }
    look();
  };
  store_.write(std::move(change));
}

}  // namespace duet::task
