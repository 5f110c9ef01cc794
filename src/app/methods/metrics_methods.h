#pragma once

#include "app/metrics/metrics.h"
#include "duet/base/clock.h"
#include "duet/peer/methods.h"

namespace duet::app {

/// `daemon.metrics`.
void add_metrics_methods(peer::Methods& methods, const base::Clock& clock, Metrics& metrics);

}  // namespace duet::app
