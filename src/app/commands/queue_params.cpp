#include "app/commands/queue_params.h"

#include <chrono>
#include <optional>
#include <string>

#include "app/project/failure.h"
#include "app/words/moment.h"
#include "duet/base/clock.h"
#include "duet/base/utc_text.h"

namespace duet::app {

void add_start_time(boost::json::object& params, const CommandLine& line) {
  const auto delay = line.duration("delay");
  const auto at = line.text("at");
  if (delay && at) throw Failure("--delay and --at exclude each other");
  if (delay) params["delaySeconds"] = std::chrono::duration<double>(*delay).count();
  if (!at) return;
  const base::UtcTime now = base::system_clock().utc();
  const std::optional<Moment> moment = parse_future(*at, now);
  if (!moment) throw Failure("--at is '" + *at + "': it is " + std::string(future_forms));
  if (*moment < now) throw Failure("--at is '" + *at + "', which has passed");
  params["notBefore"] = base::utc_text(*moment);
}

boost::json::object labels_given(const CommandLine& line) {
  boost::json::object labels;
  for (const std::string& pair : line.texts("label")) {
    const std::size_t equals = pair.find('=');
    labels[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return labels;
}

}  // namespace duet::app
