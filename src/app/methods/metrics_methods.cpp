#include "app/methods/metrics_methods.h"

#include <chrono>
#include <cstdint>
#include <string>

#include <boost/describe/class.hpp>

#include "app/doors/roles.h"
#include "duet/base/utc_text.h"
#include "duet/rpc/error.h"

namespace duet::app {
namespace {

struct MetricsWanted {
  std::int64_t seconds = 3600;
  std::int64_t points = 120;
};
BOOST_DESCRIBE_STRUCT(MetricsWanted, (), (seconds, points))

struct MetricsTold {
  std::string from;
  std::string to;
  double step;
  MetricSeries series;
};
BOOST_DESCRIBE_STRUCT(MetricsTold, (), (from, to, step, series))

void check_range(const std::string& name, std::int64_t given, std::int64_t least, std::int64_t most) {
  if (given >= least && given <= most) return;
  throw rpc::invalid_params(name, "integer from " + std::to_string(least) + " to " + std::to_string(most), "number");
}

}  // namespace

void add_metrics_methods(peer::Methods& methods, const base::Clock& clock, Metrics& metrics) {
  const auto handler = [&clock, &metrics](const MetricsWanted& wanted) {
    check_range("seconds", wanted.seconds, 60, MetricHistory::longest);
    check_range("points", wanted.points, 2, 720);
    const base::UtcTime now = clock.utc();
    const auto seconds = static_cast<double>(wanted.seconds);
    return MetricsTold{.from = base::utc_text(now - std::chrono::seconds(wanted.seconds)),
                       .to = base::utc_text(now),
                       .step = seconds / static_cast<double>(wanted.points),
                       .series = metrics.series(now, seconds, static_cast<std::size_t>(wanted.points))};
  };
  methods
      .add("daemon.metrics", "Tells what the daemon did, in numbers over time; null where there was no daemon", handler)
      .needs(role::observe)
      .read_only()
      .describe(&MetricsWanted::seconds, "How far back it goes, 60 to 86400; an hour unless given")
      .describe(&MetricsWanted::points, "How many numbers each series has, 2 to 720; 120 unless given");
}

}  // namespace duet::app
