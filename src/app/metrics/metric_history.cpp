#include "app/metrics/metric_history.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

namespace duet::app {
namespace {

static_assert(std::is_trivially_copyable_v<MetricSlot>);
static_assert((900 + 720 + 1440) * sizeof(MetricSlot) <= 2U * 1024 * 1024);

std::uint32_t sum_of(std::uint32_t some, std::uint32_t more) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{some} + more, UINT32_MAX));
}

void add_level(MetricLevel& level, const MetricLevel& later) {
  level.most = std::max(level.most, later.most);
  level.last = later.last;
}

// With the size of a slot, so that another build's are not taken for ours.
static_assert(sizeof(MetricSlot) == 668);
constexpr std::string_view file_mark = "duet-rpc metrics 1 668\n";

template <typename Value>
void append_bytes(std::string& bytes, const Value& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename Value>
bool take_bytes(std::string_view& bytes, Value& value) {
  if (bytes.size() < sizeof value) return false;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return true;
}

// One point of the series, which is gathered from the slots whose middle it has.
struct Point {
  bool is_known = false;  // there was a daemon
  MetricSlot sum = {};
};

double milli(double value) { return std::round(value * 1000) / 1000; }

std::optional<double> scaled(std::optional<double> value, double unit) {
  return value ? std::optional(milli(*value * unit)) : std::nullopt;
}

void append_point(MetricSeries& series, const Point& point) {
  constexpr double second = 0.001;  // in ms
  const MetricSlot& sum = point.sum;
  const auto whole = [&point](std::uint64_t value) {
    return point.is_known ? std::optional(value) : std::optional<std::uint64_t>();
  };
  series.submitted.push_back(whole(sum.submitted));
  series.completed.push_back(whole(sum.completed));
  series.failed.push_back(whole(sum.failed));
  series.cancelled.push_back(whole(sum.cancelled));
  series.queued.push_back(whole(sum.queued.most));
  series.running.push_back(whole(sum.running.most));
  series.clients.push_back(whole(sum.clients.most));
  series.waitP50.push_back(scaled(sum.waits.quantile(0.5), second));
  series.waitP95.push_back(scaled(sum.waits.quantile(0.95), second));
  series.runP50.push_back(scaled(sum.runs.quantile(0.5), second));
  series.runP95.push_back(scaled(sum.runs.quantile(0.95), second));
  series.requests.push_back(whole(sum.requests));
  series.requestP50.push_back(scaled(sum.request_times.quantile(0.5), turn_time_unit));
  series.requestP99.push_back(scaled(sum.request_times.quantile(0.99), turn_time_unit));
  series.lagP99.push_back(scaled(sum.turn_times.quantile(0.99), turn_time_unit * 0.001));
  series.memory.push_back(whole(std::uint64_t{sum.memory.most} * 1024));
}

// Nothing happened there, but somebody may have been there: then what was there last still was.
Point quiet_point(const std::deque<MetricSlot>& slots, double middle) {
  const auto next = std::ranges::upper_bound(slots, middle, {}, &MetricSlot::start);
  const bool has_last = next != slots.begin();
  const MetricTime life = next != slots.end() ? next->life : slots.empty() ? 0 : slots.back().life;
  if (!has_last || std::prev(next)->life != life) return {};
  const MetricSlot& last = *std::prev(next);
  Point point{.is_known = true};
  point.sum.queued.set(last.queued.last);
  point.sum.running.set(last.running.last);
  point.sum.clients.set(last.clients.last);
  point.sum.memory.set(last.memory.last);
  return point;
}

}  // namespace

void MetricSlot::add(const MetricSlot& later) {
  submitted = sum_of(submitted, later.submitted);
  completed = sum_of(completed, later.completed);
  failed = sum_of(failed, later.failed);
  cancelled = sum_of(cancelled, later.cancelled);
  requests = sum_of(requests, later.requests);
  add_level(queued, later.queued);
  add_level(running, later.running);
  add_level(clients, later.clients);
  add_level(memory, later.memory);
  request_times.add(later.request_times);
  turn_times.add(later.turn_times);
  waits.add(later.waits);
  runs.add(later.runs);
}

void MetricHistory::Tier::add(const MetricSlot& slot) {
  const MetricTime start = slot.start - slot.start % width;
  while (!slots.empty() && slots.back().start > start) slots.pop_back();
  if (!slots.empty() && slots.back().start == start && slots.back().life == slot.life) {
    slots.back().add(slot);
  } else {
    slots.push_back(slot);
    slots.back().start = start;
  }
  while (slots.size() > length / width || slots.front().start + length <= start) slots.pop_front();
}

void MetricHistory::add(const MetricSlot& slot) {
  for (Tier& tier : tiers_) tier.add(slot);
}

bool MetricHistory::Tier::is_sound(MetricTime now) const {
  const bool is_early =
      std::ranges::all_of(slots, [now](const MetricSlot& slot) { return slot.start <= now && slot.life <= now; });
  return is_early && slots.size() <= length / width && std::ranges::is_sorted(slots, {}, &MetricSlot::start);
}

std::string MetricHistory::to_bytes() const {
  std::string bytes(file_mark);
  for (const Tier& tier : tiers_) {
    const auto count = static_cast<std::uint32_t>(tier.slots.size());
    append_bytes(bytes, count);
    for (const MetricSlot& slot : tier.slots) append_bytes(bytes, slot);
  }
  return bytes;
}

std::optional<MetricHistory> MetricHistory::from_bytes(std::string_view bytes, MetricTime now) {
  if (!bytes.starts_with(file_mark)) return std::nullopt;
  bytes.remove_prefix(file_mark.size());
  MetricHistory history;
  for (Tier& tier : history.tiers_) {
    std::uint32_t left = 0;
    if (!take_bytes(bytes, left)) return std::nullopt;
    for (; left > 0; --left) {
      if (!take_bytes(bytes, tier.slots.emplace_back())) return std::nullopt;
    }
    if (!tier.is_sound(now)) return std::nullopt;
  }
  return bytes.empty() ? std::optional(std::move(history)) : std::nullopt;
}

MetricSeries MetricHistory::series(double now, double seconds, std::size_t points) const {
  const auto tier =
      std::ranges::find_if(tiers_, [seconds](const Tier& each) { return seconds <= static_cast<double>(each.length); });
  const std::deque<MetricSlot>& slots = tier->slots;
  const double from = now - seconds;
  const double step = seconds / static_cast<double>(points);
  // The slot that is not over yet belongs to the last point.
  const auto time_of = [now, width = tier->width](const MetricSlot& slot) {
    return std::min(slot.start + width / 2.0, std::nextafter(now, 0));
  };
  auto next = std::ranges::find_if(slots, [&](const MetricSlot& slot) { return time_of(slot) >= from; });
  MetricSeries series;
  for (std::size_t i = 0; i < points; ++i) {
    const double end = i + 1 == points ? now : from + step * static_cast<double>(i + 1);
    Point point;
    for (; next != slots.end() && time_of(*next) < end; ++next) {
      point.is_known = true;
      point.sum.add(*next);
    }
    append_point(series, point.is_known ? point : quiet_point(slots, end - step / 2));
  }
  return series;
}

MetricSlot MetricHistory::sum(MetricTime now, MetricTime seconds) const {
  MetricSlot sum;
  for (const MetricSlot& slot : tiers_[0].slots) {
    if (slot.start + seconds > now) sum.add(slot);
  }
  return sum;
}

}  // namespace duet::app
