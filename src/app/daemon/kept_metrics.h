#pragma once

#include "app/metrics/metrics.h"
#include "app/project/state_folder.h"
#include "duet/base/clock.h"
#include "duet/base/log.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// The daemon's metrics, and the file of the state folder that they outlive it in. It is written now and then while
/// something happens, and at the end; a daemon that is killed loses what came since. For the loop's thread only.
class KeptMetrics {
 public:
  /// `levels` are asked for once the loop turns.
  KeptMetrics(transport::Loop& loop, base::Log& log, const StateFolder& folder, std::function<MetricLevels()> levels);
  KeptMetrics(const KeptMetrics&) = delete;
  KeptMetrics& operator=(const KeptMetrics&) = delete;

  Metrics& metrics() { return metrics_; }

  /// What cannot be written is a warning.
  void save();

 private:
  void save_if_due();

  transport::Loop& loop_;
  base::Log& log_;
  const StateFolder& folder_;
  Metrics metrics_;
  base::TimePoint next_save_;
};

}  // namespace duet::app
