#include <algorithm>
#include <set>

#include <boost/json/array.hpp>

#include "duet/base/base64.h"
#include "duet/rpc/value.h"
#include "simulate/model_database.h"
#include "simulate/model_fate.h"
#include "task/postgres/records.h"
#include "task/postgres/report.h"

// Starts, output and ends of attempts, and the next claims: 0001_5_claim.sql, 0001_6_report.sql.

namespace duet::simulate {

namespace json = boost::json;
using task::postgres::End;
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
  places = 26,
  told_timeline,
};

bool is_of(const ModelTask* task, const ModelWorker& worker, std::int64_t fence) {
  return task != nullptr && task->runs_under(fence) && task->worker == worker.id;
}

// Puts it at its place, whatever was there.
void put(std::string& text, std::size_t offset, const std::string& piece) {
  if (text.size() < offset + piece.size()) text.resize(offset + piece.size(), '\0');
  text.replace(offset, piece.size(), piece);
}

// Whether it comes behind the place that this argument has for its lane, `{"LANE":[priority,id]}`.
bool is_behind(const ModelTask& task, const json::object& places) {
  const json::value* const place = places.if_contains(std::to_string(task.lane));
  if (place == nullptr) return true;
  const std::int64_t priority = place->as_array().at(0).as_int64();
  return task.priority < priority || (task.priority == priority && task.id > place->as_array().at(1).as_int64());
}

// `0o12e40o` as a letter for each byte; without marks all of it is stdout.
std::string letters_of(std::string_view marks, std::size_t size) {
  std::string letters(size, 'o');
  while (!marks.empty()) {
    const std::size_t digits = marks.find_first_not_of("0123456789");
    const std::size_t from = std::stoul(std::string(marks.substr(0, digits)));
    std::fill(letters.begin() + static_cast<std::ptrdiff_t>(std::min(from, size)), letters.end(), marks.at(digits));
    marks.remove_prefix(digits + 1);
  }
  return letters;
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
  ReportCall call{.worker = who_has_told(arguments)};
  if (arguments.number(told_timeline) != server_timeline_) throw Refused{"DU004", "untold"};
  start_some(call, arguments.at(starts));
  keep_output(call, arguments.at(output));
  end_some(call, arguments);
  const bool may_claim = call.worker.state == ModelWorker::live && !(call.worker.recovering && is_recovering());
  if (may_claim && arguments.number(most) > 0) claim(call, arguments.number(most), arguments.at(places));
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
    ModelOutput& kept = data_.output[{task->id, task->attempts}];
    const std::string bytes = base::from_base64(text_in(piece, "bytes")).value();
    const auto offset = static_cast<std::size_t>(number_in(piece, "offset"));
    if (!bytes.empty()) {
      put(kept.bytes, offset, bytes);
      put(kept.streams, offset, letters_of(text_in(piece, "marks"), bytes.size()));
    }
    kept.dropped = kept.dropped || !task::postgres::array_in(piece, "dropped").empty();
    kept.is_all = kept.is_all || flag_in(piece, "last");
  }
}

// Of a second end of the same task nothing is said: it is told again in another call.
void ModelDatabase::end_some(ReportCall& call, const Arguments& arguments) {
  const std::size_t many = arguments.list(tasks).size();
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < many; ++i) {
    ModelTask* const task = find(*arguments.number(tasks, i));
    const std::int64_t flagged = arguments.number(flags, i).value_or(0);
    const bool counts = is_of(task, call.worker, *arguments.number(fences, i)) &&
                        (!task->cancelling || (flagged & (End::tree_is_gone | End::put_back)) != 0);
    if (!counts) continue;
    end_one(call, arguments, i, *task);
    seen.insert(task->id);
  }
  const Lanes ready = settle(call.done, call.failed);
  for (std::size_t i = 0; i < many; ++i) {
    if (!seen.contains(*arguments.number(tasks, i))) not_running(call, arguments, i);
  }
  for (const auto& [lane, count] : count_of(ready)) {
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
  const Fate fate = fate_of(task, flagged, arguments.element(oks, i) == "t", retry.has_value());
  const bool asks_back = (flagged & End::put_back) != 0;
  const bool is_put_back = asks_back && !task.announced;
  const bool was_announced = task.announced;
  const bool is_new_start = !was_announced && arguments.number(started_ago, i) && !is_put_back;
  task.state = state_of(fate, retry.value_or(0) > 0);
  if (is_put_back && (fate == Fate::put_back || fate == Fate::cancelled)) --task.attempts;
  const bool is_lost = (flagged & End::lease_was_over) != 0 && (fate == Fate::spared || fate == Fate::failed);
  if (is_lost) ++task.lost;
  is_end(fate) ? keep_end(arguments, i, task) : drop_end(task);
  const bool has_failed = fate == Fate::stopped || fate == Fate::failed;
  task.reason.reset();
  if (has_failed) {
    const auto usual = static_cast<std::int64_t>(asks_back ? task::Reason::lost : task::Reason::exit);
    task.reason =
        is_lost ? task::Reason::lost : static_cast<task::Reason>(arguments.number(reasons, i).value_or(usual));
  }
  task.message = has_failed ? arguments.element(messages, i).value_or("") : "";
  set_pause(task, fate, retry.value_or(0));
  task.cancelling = false;
  if (is_new_start) tell_task(task, 0, 1);
  const bool had_begun = was_announced || is_new_start;
  if (!is_put_back || task.has_ended()) tell_task(task, had_begun ? 1 : 0, task.has_ended() ? task.world() : 0);
  if (!is_put_back) data_.after.erase(task.id);
  if (task.has_dependents && task.state == ModelTask::completed) call.done.push_back(task.id);
  if (task.has_dependents && task.state > ModelTask::completed) call.failed.push_back(task.id);
  call.add("end", task.id, *task.fence, task.has_ended() ? task.world() : 0);
}

void ModelDatabase::keep_end(const Arguments& arguments, std::size_t i, ModelTask& task) const {
  const std::optional<std::int64_t> begun = arguments.number(started_ago, i);
  if (!task.started && begun) task.started = now() - *begun;
  if (!task.pid) task.pid = arguments.number(pids, i);
  task.completed_at = now() - arguments.number(ended_ago, i).value_or(0);
  task.exit_code = arguments.number(codes, i);
  task.signal = arguments.element(signals, i);
  task.env.reset();
  task.result = arguments.element(results, i).value_or("");
}

void ModelDatabase::drop_end(ModelTask& task) {
  task.started.reset();
  task.pid.reset();
  task.completed_at.reset();
  task.exit_code.reset();
  task.signal.reset();
}

void ModelDatabase::set_pause(ModelTask& task, Fate fate, std::int64_t pause) const {
  const bool waits = fate == Fate::again || (fate == Fate::put_back && pause > 0);
  task.retry_at.reset();
  task.due.reset();
  if (fate == Fate::again) task.retry_at = now() + pause;
  if (waits) task.due = std::max(task.not_before.value_or(0), now() + pause);
}

// What was told before is said again, what is cancelled waits for its tree, all else is fenced. The end of one that is
// lost for good is kept.
void ModelDatabase::not_running(ReportCall& call, const Arguments& arguments, std::size_t i) {
  const std::int64_t id = *arguments.number(tasks, i);
  const std::int64_t fence = *arguments.number(fences, i);
  ModelTask* const task = find(id);
  const bool is_lost = task != nullptr && task->state == ModelTask::failed && task->reason == task::Reason::lost;
  const bool is_his = task != nullptr && task->worker == call.worker.id && task->fence == fence;
  const bool is_same = is_lost && is_his && task->exit_code == arguments.number(codes, i) &&
                       task->signal == arguments.element(signals, i);  // it is told again
  if (is_lost && task->fence == fence && task->late.empty() && !is_same) {
    const auto owner = data_.workers.find(task->worker);
    const bool is_same_name = owner != data_.workers.end() && owner->second.name == call.worker.name;
    if (is_his || is_same_name) {
      task->late = rpc::to_text(Object{{"exitCode", arguments.number(codes, i).value_or(-1)},
                                       {"signal", arguments.element(signals, i).value_or("")}});
    }
  }
  if (!is_his || (is_lost && !is_same)) return call.add("fenced", id, fence, 0);
  call.add("end", id, fence, task->state == ModelTask::running ? 1 : task->world());
}

// Highest priority first, then the lowest id, over the lanes that it serves.
void ModelDatabase::claim(ReportCall& call, std::int64_t many, const Argument& told) {
  const json::object behind = told ? rpc::parse_value(*told).as_object() : json::object();
  std::vector<ModelTask*> ready;
  for (auto& [id, task] : data_.tasks) {
    const bool is_his = task.state == ModelTask::ready && serves(call.worker, data_.lanes.at(task.lane));
    if (is_his && is_behind(task, behind)) ready.push_back(&task);
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
  if (has_old_snapshot && !told && chance_.one_in(4)) {
    call.rows.push_back({"slow", {}, std::to_string(chance_.below(200'000))});
  }
}

}  // namespace duet::simulate
