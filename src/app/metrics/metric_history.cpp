#include "app/metrics/metric_history.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include <boost/crc.hpp>

namespace duet::app {
namespace {

static_assert(std::is_trivially_copyable_v<PackedSlot> && std::has_unique_object_representations_v<PackedSlot>);
static_assert((900 + 720 + 1440) * sizeof(PackedSlot) + 3 * sizeof(MetricSlot) <= 2U * 1024 * 1024);

std::uint32_t sum_of(std::uint32_t some, std::uint32_t more) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{some} + more, UINT32_MAX));
}

void add_level(MetricLevel& level, const MetricLevel& later) {
  level.most = std::max(level.most, later.most);
  level.last = later.last;
}

// With the form and the size of a slot, so that another build's are not taken for ours.
static_assert(sizeof(PackedSlot) == 668);
constexpr std::string_view file_mark = "duet-rpc metrics 2 668\n";

std::uint32_t checksum_of(std::string_view bytes) {
  boost::crc_32_type sum;
  sum.process_bytes(bytes.data(), bytes.size());
  return sum.checksum();
}

MetricTime start_of(const PackedSlot& slot) { return slot.counts.start; }

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
  const MetricCounts& counts = sum.counts;
  const auto whole = [&point](std::uint64_t value) {
    return point.is_known ? std::optional(value) : std::optional<std::uint64_t>();
  };
  series.submitted.push_back(whole(counts.submitted));
  series.completed.push_back(whole(counts.completed));
  series.failed.push_back(whole(counts.failed));
  series.cancelled.push_back(whole(counts.cancelled));
  series.queued.push_back(whole(counts.queued.most));
  series.running.push_back(whole(counts.running.most));
  series.clients.push_back(whole(counts.clients.most));
  series.waitP50.push_back(scaled(sum.waits.quantile(0.5), second));
  series.waitP95.push_back(scaled(sum.waits.quantile(0.95), second));
  series.runP50.push_back(scaled(sum.runs.quantile(0.5), second));
  series.runP95.push_back(scaled(sum.runs.quantile(0.95), second));
  series.requests.push_back(whole(counts.requests));
  series.requestP50.push_back(scaled(sum.request_times.quantile(0.5), turn_time_unit));
  series.requestP99.push_back(scaled(sum.request_times.quantile(0.99), turn_time_unit));
  series.lagP99.push_back(scaled(sum.turn_times.quantile(0.99), turn_time_unit * 0.001));
  series.memory.push_back(whole(std::uint64_t{counts.memory.most} * 1024));
}

// Nothing happened there, but somebody may have been there: then what was there last still was.
Point quiet_point(const std::deque<PackedSlot>& slots, double middle) {
  const auto next = std::ranges::upper_bound(slots, middle, {}, start_of);
  const bool has_last = next != slots.begin();
  const MetricTime life = next != slots.end() ? next->counts.life : slots.empty() ? 0 : slots.back().counts.life;
  if (!has_last || std::prev(next)->counts.life != life) return {};
  const MetricCounts& last = std::prev(next)->counts;
  Point point{.is_known = true};
  point.sum.counts.queued.set(last.queued.last);
  point.sum.counts.running.set(last.running.last);
  point.sum.counts.clients.set(last.clients.last);
  point.sum.counts.memory.set(last.memory.last);
  return point;
}

}  // namespace

void MetricCounts::add(const MetricCounts& later) {
  submitted = sum_of(submitted, later.submitted);
  completed = sum_of(completed, later.completed);
  failed = sum_of(failed, later.failed);
  cancelled = sum_of(cancelled, later.cancelled);
  requests = sum_of(requests, later.requests);
  add_level(queued, later.queued);
  add_level(running, later.running);
  add_level(clients, later.clients);
  add_level(memory, later.memory);
}

void MetricSlot::add(const MetricSlot& later) {
  counts.add(later.counts);
  request_times.add(later.request_times);
  turn_times.add(later.turn_times);
  waits.add(later.waits);
  runs.add(later.runs);
}

PackedSlot::PackedSlot(const MetricSlot& slot)
    : counts(slot.counts),
      request_times(slot.request_times),
      turn_times(slot.turn_times),
      waits(slot.waits),
      runs(slot.runs) {}

void PackedSlot::add_to(MetricSlot& sum) const {
  sum.counts.add(counts);
  request_times.add_to(sum.request_times);
  turn_times.add_to(sum.turn_times);
  waits.add_to(sum.waits);
  runs.add_to(sum.runs);
}

// The newest one is packed anew each time: adding to a packed one would lose what is small beside what is there.
void MetricHistory::Tier::add(const MetricSlot& slot) {
  const MetricTime start = slot.counts.start - slot.counts.start % width;
  while (!slots.empty() && slots.back().counts.start > start) slots.pop_back();
  if (!slots.empty() && newest.counts.start == start && newest.counts.life == slot.counts.life) {
    newest.add(slot);
    slots.back() = PackedSlot(newest);
  } else {
    newest = slot;
    newest.counts.start = start;
    slots.emplace_back(newest);
  }
  while (slots.size() > length / width || slots.front().counts.start + length <= start) slots.pop_front();
}

void MetricHistory::add(const MetricSlot& slot) {
  for (Tier& tier : tiers_) tier.add(slot);
}

bool MetricHistory::Tier::is_sound() const {
  return slots.size() <= length / width && std::ranges::is_sorted(slots, {}, start_of);
}

std::string MetricHistory::to_bytes() const {
  std::string bytes(file_mark);
  for (const Tier& tier : tiers_) {
    const auto count = static_cast<std::uint32_t>(tier.slots.size());
    append_bytes(bytes, count);
    for (const PackedSlot& slot : tier.slots) append_bytes(bytes, slot);
  }
  append_bytes(bytes, checksum_of(bytes));
  return bytes;
}

std::optional<MetricHistory> MetricHistory::from_bytes(std::string_view bytes, MetricTime now) {
  std::uint32_t checksum = 0;
  if (!bytes.starts_with(file_mark) || bytes.size() < file_mark.size() + sizeof checksum) return std::nullopt;
  std::string_view end = bytes.substr(bytes.size() - sizeof checksum);
  take_bytes(end, checksum);
  bytes.remove_suffix(sizeof checksum);
  if (checksum != checksum_of(bytes)) return std::nullopt;
  bytes.remove_prefix(file_mark.size());
  MetricHistory history;
  for (Tier& tier : history.tiers_) {
    std::uint32_t left = 0;
    if (!take_bytes(bytes, left)) return std::nullopt;
    for (; left > 0; --left) {
      if (!take_bytes(bytes, tier.slots.emplace_back())) return std::nullopt;
    }
    if (!tier.is_sound()) return std::nullopt;
    std::erase_if(tier.slots, [now](const PackedSlot& slot) { return slot.counts.start > now; });
  }
  return bytes.empty() ? std::optional(std::move(history)) : std::nullopt;
}

MetricSeries MetricHistory::series(double now, double seconds, std::size_t points) const {
  const auto tier =
      std::ranges::find_if(tiers_, [seconds](const Tier& each) { return seconds <= static_cast<double>(each.length); });
  const std::deque<PackedSlot>& slots = tier->slots;
  const double from = now - seconds;
  const double step = seconds / static_cast<double>(points);
  // The slot that is not over yet belongs to the last point.
  const auto time_of = [now, width = tier->width](const PackedSlot& slot) {
    return std::min(slot.counts.start + width / 2.0, std::nextafter(now, 0));
  };
  auto next = std::ranges::find_if(slots, [&](const PackedSlot& slot) { return time_of(slot) >= from; });
  MetricSeries series;
  for (std::size_t i = 0; i < points; ++i) {
    const double end = i + 1 == points ? now : from + step * static_cast<double>(i + 1);
    Point point;
    for (; next != slots.end() && time_of(*next) < end; ++next) {
      point.is_known = true;
      next->add_to(point.sum);
    }
    append_point(series, point.is_known ? point : quiet_point(slots, end - step / 2));
  }
  return series;
}

MetricSlot MetricHistory::sum(MetricTime now, MetricTime seconds) const {
  MetricSlot sum;
  for (const PackedSlot& slot : tiers_[0].slots) {
    if (slot.counts.start + seconds > now) slot.add_to(sum);
  }
  return sum;
}

}  // namespace duet::app
