#include "task/transition.h"

#include <array>
#include <chrono>
#include <utility>

#include "duet/base/utc_text.h"
#include "duet/rpc/object_text.h"
#include "duet/rpc/value.h"

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
  if (progress.spared > 0) params.add("attemptsNotCounted", progress.spared);
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

void add_usage(rpc::ObjectText& params, const Usage& usage) {
  params.add_json("cpuSeconds", rpc::to_text(std::chrono::duration<double>(usage.cpu).count()));
  params.add("maxMemory", usage.max_memory).add("outputBytes", usage.output_bytes);
}

}  // namespace

std::function<void(StoreWriter&)> write_of(Transition transition) {
  return [transition = std::move(transition)](StoreWriter& writer) {
    const Progress& to = transition.to;
    if (transition.also) transition.also(writer);
    writer.update(transition.id, to);
    if (transition.result) writer.set_result(transition.id, *transition.result);
    std::optional<Usage> used;
    if (transition.usage) used = writer.add_usage(transition.id, *transition.usage);
    const bool is_news = transition.is_news || to.state != transition.from || (to.retry_at && !to.cancelling);
    if (!is_news) return;
    rpc::ObjectText params = event_params(transition.id, transition.agent, to);
    if (used && has_ended(to.state)) add_usage(params, *used);
    writer.tell(event_kind(to.state), transition.id, std::move(params));
  };
}

bool tells_start(const Event& event) { return event.kind == event_kind(State::running); }

bool tells_end(const Event& event) {
  return event.kind == event_kind(State::completed) || event.kind == event_kind(State::failed) ||
         event.kind == event_kind(State::cancelled);
}

void tell_change(StoreWriter& writer, std::string_view kind, TaskId id, const QueuedTask& task,
                 const std::vector<std::string>& changed) {
  rpc::ObjectText params = event_params(id, task.agent, {.attempts = task.attempts});
  if (!changed.empty()) {
    std::string names;
    for (const std::string& name : changed) names += (names.empty() ? "[" : ",") + rpc::quoted(name);
    params.add_json("changed", names + "]");
  }
  writer.tell(kind, id, std::move(params));
}

void tell_queued(StoreWriter& writer, const NewTask& task) {
  rpc::ObjectText params = event_params(task.id, task.agent, {});
  params.add("createdAt", writer.text_of(task.created_at));
  writer.tell(event_kind(State::queued), task.id, std::move(params), task.created_at);
}

}  // namespace duet::task
