#include "task/transition.h"

#include <array>
#include <utility>

#include "duet/base/utc_text.h"
#include "duet/rpc/object_text.h"

namespace duet::task {
namespace {

std::string_view event_kind(State state) {
  constexpr std::array<std::string_view, 5> kinds{"taskQueued", "taskStarted", "taskCompleted", "taskFailed",
                                                  "taskCancelled"};
  return kinds.at(static_cast<std::size_t>(state));
}

rpc::ObjectText event_params(TaskId id, const std::string& agent, const Progress& progress) {
  rpc::ObjectText params;
  params.add("taskId", to_text(id)).add("state", name_of(progress.state)).add("agent", agent);
  params.add("attempts", progress.attempts);
  if (progress.retry_at) params.add("retryAt", base::utc_text(*progress.retry_at));
  if (progress.state == State::queued) return params;
  if (progress.started_at) params.add("startedAt", base::utc_text(*progress.started_at));
  if (progress.pid) params.add("pid", *progress.pid);
  if (progress.state == State::running) return params;
  if (progress.completed_at) params.add("completedAt", base::utc_text(*progress.completed_at));
  params.add_json("exitCode", progress.exit_code ? std::to_string(*progress.exit_code) : "null");
  params.add_json("signal", progress.signal.empty() ? "null" : rpc::quoted(progress.signal));
  if (const std::optional<Failure>& error = progress.error) {
    rpc::ObjectText failure;
    failure.add("reason", name_of(error->reason)).add("message", error->message);
    params.add_json("error", failure.take());
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
    writer.tell(event_kind(to.state), transition.id, event_params(transition.id, transition.agent, to));
  };
}

bool tells_start(const Event& event) { return event.kind == event_kind(State::running); }

bool tells_end(const Event& event) {
  return event.kind == event_kind(State::completed) || event.kind == event_kind(State::failed) ||
         event.kind == event_kind(State::cancelled);
}

void tell_queued(StoreWriter& writer, TaskId id, const std::string& agent) {
  writer.tell(event_kind(State::queued), id, event_params(id, agent, {}));
}

}  // namespace duet::task
