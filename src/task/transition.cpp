#include "task/transition.h"

#include <array>
#include <utility>

#include <boost/json/object.hpp>

#include "duet/base/utc_text.h"
#include "duet/rpc/value.h"

namespace duet::task {
namespace {

namespace json = boost::json;

std::string_view event_kind(State state) {
  constexpr std::array<std::string_view, 5> kinds{"taskQueued", "taskStarted", "taskCompleted", "taskFailed",
                                                  "taskCancelled"};
  return kinds.at(static_cast<std::size_t>(state));
}

json::object event_params(TaskId id, const std::string& agent, const Progress& progress) {
  json::object params{
      {"taskId", to_text(id)}, {"state", name_of(progress.state)}, {"agent", agent}, {"attempts", progress.attempts}};
  if (progress.retry_at) params["retryAt"] = base::utc_text(*progress.retry_at);
  if (progress.state == State::queued) return params;
  if (progress.started_at) params["startedAt"] = base::utc_text(*progress.started_at);
  if (progress.pid) params["pid"] = *progress.pid;
  if (progress.state == State::running) return params;
  if (progress.completed_at) params["completedAt"] = base::utc_text(*progress.completed_at);
  params["exitCode"] = progress.exit_code ? json::value(*progress.exit_code) : json::value(nullptr);
  params["signal"] = progress.signal.empty() ? json::value(nullptr) : json::value(progress.signal);
  if (progress.error) {
    params["error"] = {{"reason", name_of(progress.error->reason)}, {"message", progress.error->message}};
  }
  return params;
}

}  // namespace

std::function<void(StoreWriter&)> write_of(Transition transition) {
  return [transition = std::move(transition)](StoreWriter& writer) {
    const Progress& to = transition.to;
    writer.update(transition.id, to);
    if (transition.result) writer.set_result(transition.id, *transition.result);
    if (to.state == transition.from && (to.cancelling || !to.retry_at)) return;
    const json::object params = event_params(transition.id, transition.agent, to);
    writer.tell(event_kind(to.state), transition.id, rpc::to_text(params));
  };
}

bool tells_start(const Event& event) { return event.kind == event_kind(State::running); }

bool tells_end(const Event& event) {
  return event.kind == event_kind(State::completed) || event.kind == event_kind(State::failed) ||
         event.kind == event_kind(State::cancelled);
}

void tell_queued(StoreWriter& writer, TaskId id, const std::string& agent) {
  writer.tell(event_kind(State::queued), id, rpc::to_text(event_params(id, agent, {})));
}

}  // namespace duet::task
