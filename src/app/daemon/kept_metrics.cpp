#include "app/daemon/kept_metrics.h"

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <utility>

#include "app/project/failure.h"

namespace duet::app {
namespace {

constexpr base::Duration save_pause = std::chrono::minutes(10);
constexpr std::size_t most_saved = 4U * 1024 * 1024;

// The second number of statm(5), in pages.
std::uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

KeptMetrics::KeptMetrics(transport::Loop& loop, base::Log& log, const StateFolder& folder,
                         std::function<MetricLevels()> levels)
    : loop_(loop),
      log_(log),
      folder_(folder),
      metrics_(loop.clock(),
               {.levels = std::move(levels), .memory = resident_bytes, .each_second = [this] { save_if_due(); }}),
      next_save_(loop.now() + save_pause) {
  const std::string kept = folder.read_small(metrics_name, most_saved);
  if (kept.empty() || metrics_.restore(kept)) return;
  log_.warn("what was kept of earlier metrics makes no sense, and is left out", {{"file", metrics_name}});
}

void KeptMetrics::save_if_due() {
  if (loop_.now() >= next_save_) save();
}

void KeptMetrics::save() {
  next_save_ = loop_.now() + save_pause;
  try {
    folder_.write_small(metrics_name, metrics_.bytes());
  } catch (const Failure& failure) {
    log_.warn("metrics are not kept", {{"reason", failure.what()}});
  }
}

}  // namespace duet::app
