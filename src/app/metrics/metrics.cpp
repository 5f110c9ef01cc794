#include "app/metrics/metrics.h"

#include <optional>
#include <type_traits>
#include <utility>

namespace duet::app {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration memory_pause = 10s;
constexpr MetricTime recent = 300;  // seconds that the percentiles of `/metrics` are of

MetricTime seconds_of(base::UtcTime time) {
  return static_cast<MetricTime>(std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count());
}

double exact_seconds_of(base::UtcTime time) { return static_cast<double>(base::milliseconds_of(time)) / 1000; }

}  // namespace

Metrics::Metrics(const base::Clock& clock, Sources sources)
    : clock_(clock), sources_(std::move(sources)), life_(seconds_of(clock.utc())) {}

bool Metrics::restore(std::string_view bytes) {
  std::optional<MetricHistory> former = MetricHistory::from_bytes(bytes, life_);
  if (former) history_ = std::move(*former);
  return former.has_value();
}

std::string Metrics::bytes() {
  begin_slot(clock_.now());
  return history_.to_bytes();
}

void Metrics::begin_slot(base::TimePoint now) {
  static_assert(std::is_same_v<base::Duration::period, std::nano>);
  for (std::size_t cell = 0; cell < of_one_request_.size(); ++cell) {
    if (const std::uint32_t turns = std::exchange(of_one_request_[cell], 0)) count_turn(cell, turns, turns);
  }
  if (slot_.counts.start != 0) history_.add(slot_);
  const base::UtcTime utc = clock_.utc();
  slot_ = {.counts = {.start = seconds_of(utc), .life = life_}};
  next_ = now + (std::chrono::floor<std::chrono::seconds>(utc) + 1s - utc);
  if (now >= memory_due_) {
    memory_ = sources_.memory();
    memory_due_ = now + memory_pause;
  }
  levels_changed();
  if (sources_.each_second) sources_.each_second();
}

void Metrics::levels_changed() {
  if (const base::TimePoint now = clock_.now(); now >= next_) return begin_slot(now);
  const MetricLevels levels = sources_.levels();
  slot_.counts.queued.set(levels.queued);
  slot_.counts.running.set(levels.running);
  slot_.counts.clients.set(levels.clients);
  slot_.counts.memory.set(memory_ / 1024);
}

void Metrics::count_turn(std::size_t cell, std::uint64_t handled, std::uint64_t turns) {
  slot_.turn_times.add_to(cell, turns);
  slot_.request_times.add_to(cell, handled);
  slot_.counts.requests += static_cast<std::uint32_t>(handled);
}

void Metrics::take(const task::Event& event) {
  if (event.task == 0) return;
  levels_changed();
  const TaskTimes::Times times = task_times_.take(event);
  const auto count = [](std::uint32_t& here, std::uint64_t& altogether) {
    ++here;
    ++altogether;
  };
  if (times.is_new) count(slot_.counts.submitted, totals_.submitted);
  if (event.kind == "taskCompleted") count(slot_.counts.completed, totals_.completed);
  if (event.kind == "taskFailed") count(slot_.counts.failed, totals_.failed);
  if (event.kind == "taskCancelled") count(slot_.counts.cancelled, totals_.cancelled);
  if (times.waited) slot_.waits.add(static_cast<std::uint64_t>(times.waited->count()));
  if (times.ran) slot_.runs.add(static_cast<std::uint64_t>(times.ran->count()));
}

MetricSeries Metrics::series(base::UtcTime now, double seconds, std::size_t points) {
  begin_slot(clock_.now());
  return history_.series(exact_seconds_of(now), seconds, points);
}

std::string Metrics::prometheus_text() {
  begin_slot(clock_.now());
  totals_.requests = requests_;
  return app::prometheus_text({.totals = totals_,
                               .now = slot_.counts,
                               .recent = history_.sum(slot_.counts.start, recent),
                               .memory = sources_.memory(),
                               .began = life_});
}

}  // namespace duet::app
