#include <algorithm>

#include <boost/json/array.hpp>

#include "duet/base/base64.h"
#include "duet/rpc/value.h"
#include "simulate/model_database.h"
#include "task/postgres/records.h"

// Starts, output and ends of attempts, and the next claims: 0001_5_claim.sql, 0001_6_report.sql.

namespace duet::simulate {

namespace json = boost::json;
using task::postgres::flag_in;
using task::postgres::number_in;
using task::postgres::text_in;

namespace {

// Places of report_v1's arguments.
enum Reported : std::size_t {
  starts = 2,
  tasks,
  fences,
  oks,
  codes,
  signals,
  reasons,
  messages,
  pids,
  started_ago,
  ended_ago,
  retry_ms = 16,
  flags = 19,
  results,
  output,
  most,
};

constexpr std::int64_t by_stop = 1;
constexpr std::int64_t tree_is_gone = 2;
constexpr std::int64_t put_back_flag = 4;
constexpr std::int64_t lease_was_over = 8;
constexpr int reason_lost = 4;

enum class Fate { put_back, cancelled, stopped, spared, completed, again, failed };

Fate fate_of(const ModelTask& task, std::int64_t flagged, bool is_ok, bool has_retry) {
  if (task.cancelling) return Fate::cancelled;
  const bool is_put_back = (flagged & put_back_flag) != 0;
  if (is_put_back && !task.announced) return Fate::put_back;
  if ((flagged & by_stop) != 0) return Fate::stopped;
  if ((flagged & lease_was_over) != 0) return Fate::spared;
  if (is_ok && !is_put_back) return Fate::completed;
  return has_retry && task.attempts - task.spared - task.lost <= task.retries ? Fate::again : Fate::failed;
}

bool is_end(Fate fate) { return fate != Fate::put_back && fate != Fate::spared && fate != Fate::again; }

ModelTask::State state_of(Fate fate, std::int64_t pause) {
  switch (fate) {
    case Fate::put_back:
      return pause > 0 ? ModelTask::waiting : ModelTask::ready;
    case Fate::spared:
      return ModelTask::ready;
    case Fate::again:
      return ModelTask::waiting;
    case Fate::completed:
      return ModelTask::completed;
    case Fate::cancelled:
      return ModelTask::cancelled;
    default:
      return ModelTask::failed;
  }
}

bool is_of(const ModelTask* task, const ModelWorker& worker, std::int64_t fence) {
  return task != nullptr && task->state == ModelTask::running && task->worker == worker.id && task->fence == fence;
}

}  // namespace

// A call of report_v1 as it goes on.
struct ModelDatabase::ReportCall {
  ModelWorker& worker;
  std::vector<Result::Row> rows = {};
  std::vector<std::int64_t> done = {};
  std::vector<std::int64_t> failed = {};

  void add(const std::string& what, std::int64_t task, std::int64_t fence, std::optional<int> attempt = {}) {
    rows.push_back(
        {what, std::to_string(task), std::to_string(fence), attempt ? Argument(std::to_string(*attempt)) : Argument()});
  }
};

ModelDatabase::Answer ModelDatabase::report(const Arguments& arguments) {
  ReportCall call{.worker = guard(arguments)};
  start_some(call, arguments.at(starts));
  keep_output(call, arguments.at(output));
  end_some(call, arguments);
  const bool may_claim = call.worker.state == ModelWorker::live && !(call.worker.recovering && is_recovering());
  if (may_claim) claim(call, arguments.number(most));
  return Result({"what", "id", "fence", "attempt", "agent", "grp", "on_lost", "priority", "retries", "spared", "body",
                 "env", "cancelling", "lane", "needs", "submitter"},
                call.rows);
}

// One that is told again changes nothing.
void ModelDatabase::start_some(ReportCall& call, const Argument& told) {
  if (!told) return;
  const json::value parsed = rpc::parse_value(*told);
  for (const json::value& each : parsed.as_array()) {
    const Object& start = each.as_object();
    const std::int64_t fence = number_in(start, "fence");
    ModelTask* const task = find(number_in(start, "task"));
    const bool is_his = is_of(task, call.worker, fence);
    call.add(is_his ? "start" : "fenced", number_in(start, "task"), fence);
    if (!is_his || task->announced) continue;
    task->announced = true;
    task->pid = number_in(start, "pid");
    task->started = now() - number_in(start, "ago");
    data_.after.erase(task->id);
    tell_task(*task, 0, 1);
  }
}

void ModelDatabase::keep_output(const ReportCall& call, const Argument& told) {
  if (!told) return;
  const json::value parsed = rpc::parse_value(*told);
  for (const json::value& each : parsed.as_array()) {
    const Object& piece = each.as_object();
    const ModelTask* const task = find(number_in(piece, "task"));
    const bool is_his =
        is_of(task, call.worker, number_in(piece, "fence")) && task->attempts == number_in(piece, "attempt");
    if (!is_his) continue;
    auto& [text, is_last] = data_.output[{task->id, task->attempts}];
    const std::string bytes = base::from_base64(text_in(piece, "bytes")).value();
    const auto offset = static_cast<std::size_t>(number_in(piece, "offset"));
    if (text.size() < offset + bytes.size()) text.resize(offset + bytes.size(), '\0');
    text.replace(offset, bytes.size(), bytes);
    is_last = is_last || flag_in(piece, "last");
  }
}

void ModelDatabase::end_some(ReportCall& call, const Arguments& arguments) {
  const std::size_t many = arguments.list(tasks).size();
  std::vector<std::size_t> unseen;
  for (std::size_t i = 0; i < many; ++i) {
    ModelTask* const task = find(*arguments.number(tasks, i));
    const std::int64_t flagged = arguments.number(flags, i).value_or(0);
    const bool counts = is_of(task, call.worker, *arguments.number(fences, i)) &&
                        (!task->cancelling || (flagged & (tree_is_gone | put_back_flag)) != 0);
    if (counts) {
      end_one(call, arguments, i, *task);
    } else {
      unseen.push_back(i);
    }
  }
  const Lanes ready = settle(call.done, call.failed);
  for (const std::size_t i : unseen) not_running(call, arguments, i);
  std::map<int, int> counts;
  for (const int lane : ready) ++counts[lane];
  for (const auto& [lane, count] : counts) {
    Result::Row row(16);
    row[0] = "ready";
    row[3] = std::to_string(count);
    row[13] = std::to_string(lane);
    call.rows.push_back(row);
  }
}

void ModelDatabase::end_one(ReportCall& call, const Arguments& arguments, std::size_t i, ModelTask& task) {
  const std::int64_t flagged = arguments.number(flags, i).value_or(0);
  const std::optional<std::int64_t> retry = arguments.number(retry_ms, i);
  const std::int64_t pause = retry.value_or(0);
  const Fate fate = fate_of(task, flagged, arguments.element(oks, i) == "t", retry.has_value());
  const bool asks_back = (flagged & put_back_flag) != 0;
  const bool is_put_back = asks_back && !task.announced;
  const std::optional<std::int64_t> begun = arguments.number(started_ago, i);
  const bool had_begun = task.announced || (begun && !is_put_back);
  const bool is_new_start = !task.announced && begun && !is_put_back;
  task.state = state_of(fate, pause);
  if (fate == Fate::put_back) --task.attempts;
  if (fate == Fate::spared) ++task.spared;
  if (is_end(fate)) {
    if (!task.started && begun) task.started = now() - *begun;
    if (!task.pid) task.pid = arguments.number(pids, i);
    task.completed_at = now() - arguments.number(ended_ago, i).value_or(0);
    task.exit_code = arguments.number(codes, i);
    task.signal = arguments.element(signals, i);
  } else {
    task.started.reset();
    task.pid.reset();
    task.completed_at.reset();
    task.exit_code.reset();
    task.signal.reset();
  }
  const bool has_failed = fate == Fate::stopped || fate == Fate::failed;
  task.reason =
      has_failed ? std::optional(arguments.number(reasons, i).value_or(asks_back ? reason_lost : 0)) : std::nullopt;
  task.message = has_failed ? arguments.element(messages, i).value_or("") : "";
  task.retry_at = fate == Fate::again ? std::optional(now() + pause) : std::nullopt;
  const bool waits = fate == Fate::again || (fate == Fate::put_back && pause > 0);
  task.due = waits ? std::optional(std::max(task.not_before.value_or(0), now() + pause)) : std::nullopt;
  task.cancelling = false;
  if (task.has_ended()) {
    task.env.reset();
    task.result = arguments.element(results, i).value_or("");
  }
  if (is_new_start) tell_task(task, 0, 1);
  if (!is_put_back || task.has_ended()) tell_task(task, had_begun ? 1 : 0, task.has_ended() ? task.world() : 0);
  if (!is_put_back) data_.after.erase(task.id);
  if (task.has_dependents && task.state == ModelTask::completed) call.done.push_back(task.id);
  if (task.has_dependents && task.state > ModelTask::completed) call.failed.push_back(task.id);
  call.add("end", task.id, *task.fence, task.has_ended() ? task.world() : 0);
}

// What was told before is said again, what is cancelled waits for its tree, all else is fenced. The end of one that is
// lost for good is kept.
void ModelDatabase::not_running(ReportCall& call, const Arguments& arguments, std::size_t i) {
  const std::int64_t id = *arguments.number(tasks, i);
  const std::int64_t fence = *arguments.number(fences, i);
  ModelTask* const task = find(id);
  const bool is_lost = task != nullptr && task->state == ModelTask::failed && task->reason == reason_lost;
  const bool is_his = task != nullptr && task->worker == call.worker.id && task->fence == fence;
  if (is_lost && task->fence == fence && task->late.empty()) {
    const auto owner = data_.workers.find(task->worker);
    const bool is_same_name = owner != data_.workers.end() && owner->second.name == call.worker.name;
    if (is_his || is_same_name) {
      task->late = rpc::to_text(Object{{"exitCode", arguments.number(codes, i).value_or(-1)},
                                       {"signal", arguments.element(signals, i).value_or("")}});
    }
  }
  if (!is_his || is_lost) return call.add("fenced", id, fence, 0);
  call.add("end", id, fence, task->state == ModelTask::running ? 1 : task->world());
}

// Highest priority first, then the lowest id, over the lanes that it serves.
void ModelDatabase::claim(ReportCall& call, std::int64_t many) {
  std::vector<ModelTask*> ready;
  for (auto& [id, task] : data_.tasks) {
    if (task.state == ModelTask::ready && serves(call.worker, data_.lanes.at(task.lane))) ready.push_back(&task);
  }
  std::ranges::stable_sort(ready, std::greater<>(), &ModelTask::priority);
  ready.resize(std::min(ready.size(), static_cast<std::size_t>(many)));
  for (ModelTask* const task : ready) {
    task->state = ModelTask::running;
    task->worker = call.worker.id;
    task->fence = ++data_.last_fence;
    ++task->attempts;
    task->announced = false;
    task->retry_at.reset();
    task->due.reset();
    const ModelLane& lane = data_.lanes.at(task->lane);
    call.rows.push_back({"claim", std::to_string(task->id), std::to_string(*task->fence),
                         std::to_string(task->attempts), lane.agent, lane.group, std::to_string(task->on_lost),
                         std::to_string(task->priority), std::to_string(task->retries),
                         std::to_string(task->spared + task->lost), task->body, task->env, task->cancelling ? "t" : "f",
                         std::to_string(task->lane), task::postgres::joined(lane.needs), lane.submitter});
  }
}

}  // namespace duet::simulate
