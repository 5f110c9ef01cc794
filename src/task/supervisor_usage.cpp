#include <algorithm>
#include <system_error>

#include "task/output.h"
#include "task/supervisor.h"

// Which agents may not work for a while, by what their tasks end with.

namespace duet::task {

// Until when the agent of a run that has ended may not work, if that is why it ended.
std::optional<base::UtcTime> Supervisor::usage_limit_of(RunId id, const Run& run) const {
  const auto limit = usage_limits_.find(run.task.agent);
  if (limit == usage_limits_.end()) return std::nullopt;
  const std::string output = limit->second.wants_output(*run.outcome) ? end_of_output(id, *run.outcome) : "";
  // It may have ended while there was no daemon; the clock on the wall may have been set back since.
  const base::UtcTime ended_at = std::min(run.outcome->ended_at, loop_.clock().utc());
  return limit->second.until(*run.outcome, output, ended_at);
}

// What it wrote to stdout and stderr; where that cannot be read, what its keeper has of its stdout.
std::string Supervisor::end_of_output(RunId id, const Outcome& outcome) const {
  try {
    std::string end = task::end_of_output(tasks_, id, UsageLimit::most_output);
    if (!end.empty()) return end;
  } catch (const std::system_error& error) {
    log_.warn("output of a task cannot be read", {{"task", to_text(id.task)}, {"reason", error.code().message()}});
  }
  return outcome.result;
}

void Supervisor::make_usage_limits() {
  usage_limits_.clear();
  for (const auto& [name, agent] : agents_.all()) {
    if (agent.hold) usage_limits_.emplace(name, UsageLimit(*agent.hold));
  }
}

}  // namespace duet::task
