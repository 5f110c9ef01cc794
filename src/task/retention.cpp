#include "task/retention.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "task/output.h"

namespace duet::task {
namespace {

constexpr std::size_t step = 20;  // tasks at a time
constexpr std::chrono::hours between_looks{1};

}  // namespace

Retention::Retention(transport::Loop& loop, base::Log& log, Store& store, Ledger& ledger, Limits limits, int tasks,
                     std::function<bool(TaskId)> is_busy)
    : loop_(loop),
      log_(log),
      store_(store),
      ledger_(ledger),
      limits_(limits),
      tasks_(tasks),
      is_busy_(std::move(is_busy)) {}

Retention::~Retention() {
  if (timer_) loop_.cancel(*timer_);
}

void Retention::set_limits(Limits limits) {
  limits_ = limits;
  look();
}

void Retention::look() {
  if (removing_) return;
  if (!timer_) {
    timer_ = loop_.after(between_looks, [this] {
      timer_.reset();
      look();
    });
  }
  try {
    const std::vector<EndedTask> old = find_old();
    if (!old.empty()) remove(old);
  } catch (const rpc::Error& error) {
    log_.warn("old tasks cannot be looked for", {{"reason", error.what()}});
  }
}

std::vector<EndedTask> Retention::find_old() const {
  const StateCounts& counts = ledger_.counts();
  const auto ended = static_cast<std::size_t>(counts[2] + counts[3] + counts[4]);
  const std::size_t too_many = ended > limits_.tasks ? ended - limits_.tasks : 0;
  const base::UtcTime now = loop_.clock().utc();
  constexpr std::size_t most_days = 36'500;
  const base::UtcTime oldest_kept = now - std::chrono::hours(24) * std::min(limits_.days, most_days);
  return store_.read([&](TaskReader& tasks) {
    std::vector<EndedTask> old = too_many > 0 ? tasks.ended_before(base::UtcTime::max(), std::min(too_many, step))
                                              : tasks.ended_before(oldest_kept, step);
    const TaskId newest = tasks.newest();
    std::erase_if(old, [&](const EndedTask& task) { return task.id == newest || is_busy_(task.id); });
    return old;
  });
}

void Retention::remove(const std::vector<EndedTask>& old) {
  removing_ = true;
  ledger_.erase(old, [this, old](bool kept) {
    removing_ = false;
    if (!kept) return;
    for (const EndedTask& task : old) {
      for (RunId run{task.id, 1}; run.attempt <= task.attempts; ++run.attempt) remove_output(tasks_, run);
    }
    look();
  });
}

}  // namespace duet::task
