#include "app/daemon/task_log.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "duet/rpc/json_scan.h"
#include "task/task.h"

namespace duet::app {
namespace {

constexpr std::pair<std::string_view, std::string_view> sentences[] = {
    {"taskQueued", "task accepted"}, {"taskStarted", "task started"},     {"taskCompleted", "task completed"},
    {"taskFailed", "task failed"},   {"taskCancelled", "task cancelled"},
};

// The members of an event that the log shows, as they are spelt.
struct Members {
  std::string_view agent;
  std::string_view attempts;
  std::string_view retry_at;
  std::string_view pid;
  std::string_view exit_code;
  std::string_view signal;
  std::string_view error;
  std::string_view until;
  std::string_view by;
  std::string_view task;
};

Members members_of(std::string_view params) {
  Members found;
  const std::array<std::pair<std::string_view, std::string_view*>, 10> wanted{{{"agent", &found.agent},
                                                                               {"attempts", &found.attempts},
                                                                               {"retryAt", &found.retry_at},
                                                                               {"pid", &found.pid},
                                                                               {"exitCode", &found.exit_code},
                                                                               {"signal", &found.signal},
                                                                               {"error", &found.error},
                                                                               {"until", &found.until},
                                                                               {"by", &found.by},
                                                                               {"taskId", &found.task}}};
  rpc::for_each_member(params, [&](std::string_view name, std::string_view value) {
    const auto place = std::ranges::find(wanted, name, &std::pair<std::string_view, std::string_view*>::first);
    if (place != wanted.end() && value != "null") *place->second = value;
    return true;
  });
  return found;
}

std::string_view reason_in(std::string_view error) {
  std::string_view reason;
  if (!error.starts_with('{')) return reason;
  rpc::for_each_member(error, [&](std::string_view name, std::string_view value) {
    if (name == "reason") reason = value;
    return true;
  });
  return reason;
}

void log_agent_event(base::Log& log, const task::Event& event) {
  const bool is_held = event.kind == "agentHeld";
  if (!is_held && event.kind != "agentReleased") return;
  const Members members = members_of(event.params);
  log.info(is_held ? "agent held" : "agent released", {{"agent", base::JsonText{members.agent}},
                                                       {"until", base::JsonText{members.until}},
                                                       {"task", base::JsonText{members.task}},
                                                       {"by", base::JsonText{members.by}}});
}

}  // namespace

void log_task_event(base::Log& log, const task::Event& event) {
  if (event.arrived_at || !log.enabled(base::Level::info)) return;
  if (event.task == 0) return log_agent_event(log, event);
  const auto* const sentence =
      std::ranges::find(sentences, event.kind, &std::pair<std::string_view, std::string_view>::first);
  if (sentence == std::end(sentences)) return;
  const Members members = members_of(event.params);
  const bool is_again = event.kind == "taskQueued" && !members.attempts.empty() && members.attempts != "0";
  const std::string_view again = members.retry_at.empty() ? "task is queued again" : "task is to be tried again";
  const bool is_first = members.attempts == "0" || members.attempts == "1";
  const std::string id = task::to_text(event.task);
  log.info(is_again ? again : sentence->second,
           {{"task", id},
            {"agent", base::JsonText{members.agent}},
            {"attempt", base::JsonText{is_first ? std::string_view() : members.attempts}},
            {"pid", base::JsonText{event.kind == "taskStarted" ? members.pid : std::string_view()}},
            {"exit", base::JsonText{members.exit_code}},
            {"signal", base::JsonText{members.signal}},
            {"reason", base::JsonText{reason_in(members.error)}},
            {"retryAt", base::JsonText{members.retry_at}}});
}

}  // namespace duet::app
