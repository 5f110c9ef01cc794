#include <algorithm>

#include <boost/json/array.hpp>

#include "simulate/model_database.h"
#include "task/postgres/records.h"

// Tasks come, wait and are cancelled: 0001_2_parts.sql, 0001_4_submit.sql, 0001_7_changes.sql, 0001_9_1_upkeep.sql.

namespace duet::simulate {
namespace {

// Places of submit_v1's arguments.
enum Submitted : std::size_t {
  ids = 2,
  keys,
  agents,
  groups,
  needs,
  own,
  priorities,
  retries,
  on_lost,
  delays,
  not_before,
  prompts,
  metadata,
  labels,
  bodies,
  envs,
  after,
};

std::vector<std::int64_t> ids_of(const std::string& text) {
  std::set<std::int64_t> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    all.insert(std::stoll(text.substr(at, end - at)));
    at = end + 1;
  }
  return {all.begin(), all.end()};
}

std::string not_succeeded(std::int64_t id) { return "task-" + std::to_string(id) + " did not succeed"; }

}  // namespace

ModelDatabase::Answer ModelDatabase::submit(const Arguments& arguments) {
  const ModelWorker& worker = guard(arguments);
  Result rows({"place", "id", "state", "fresh", "body", "refusal", "lane"});
  const std::size_t many = arguments.list(ids).size();
  for (std::size_t place = 0; place < many; ++place) {
    for (const auto& cell : submit_one(worker, arguments, place)) {
      rows.add(cell ? Result::Cell(*cell) : std::nullopt);
    }
  }
  return rows;
}

task::postgres::Result::Row ModelDatabase::submitted(std::size_t place, const ModelTask& task, bool fresh) {
  return {std::to_string(place + 1),
          std::to_string(task.id),
          std::to_string(task.world()),
          fresh ? "t" : "f",
          fresh ? Argument() : Argument(task.body),
          std::nullopt,
          std::to_string(task.lane)};
}

// What a task is to come after: of each whether it is still open; or which of them are unknown, or have failed.
struct ModelDatabase::After {
  std::map<std::int64_t, bool> all = {};
  std::optional<std::int64_t> unknown = {};
  std::optional<std::int64_t> failed = {};

  int open() const {
    return static_cast<int>(std::ranges::count_if(all, [](const auto& each) { return each.second; }));
  }
};

ModelDatabase::After ModelDatabase::after_of(const std::string& list) {
  After after;
  for (const std::int64_t id : ids_of(list)) {
    const ModelTask* const dependency = find(id);
    if (dependency == nullptr) {
      after.unknown = id;
      break;
    }
    if (dependency->state > ModelTask::completed && !after.failed) after.failed = id;
    after.all[id] = dependency->state != ModelTask::completed;
  }
  return after;
}

ModelTask& ModelDatabase::make_task(const ModelWorker& worker, const Arguments& arguments, std::size_t place) {
  const auto text = [&](std::size_t i) { return arguments.element(i, place).value_or(""); };
  const auto number = [&](std::size_t i) { return arguments.number(i, place); };
  const std::int64_t id = ++data_.last_task;
  ModelTask& task = data_.tasks[id];
  task.id = id;
  task.ident = ident_of(text(ids), text(keys));
  task.key = text(keys);
  task.priority = number(priorities).value_or(0);
  task.created = now();
  task.retries = static_cast<int>(number(retries).value_or(0));
  task.on_lost = static_cast<int>(number(on_lost).value_or(0));
  task.prompt = text(prompts);
  task.metadata = text(metadata);
  task.labels = text(labels);
  task.body = text(bodies);
  task.env = arguments.element(envs, place);
  const std::int64_t delay = number(delays).value_or(0);
  task.not_before = delay > 0 ? std::optional(now() + delay) : number(not_before);
  task.due = task.not_before;
  task.lane = lane_of(
      {text(agents), text(groups), task::postgres::split(text(needs)), text(own) == "t" ? worker.name : std::string()});
  return task;
}

task::postgres::Result::Row ModelDatabase::submit_one(const ModelWorker& worker, const Arguments& arguments,
                                                      std::size_t place) {
  const auto text = [&](std::size_t i) { return arguments.element(i, place).value_or(""); };
  const std::string ident = ident_of(text(ids), text(keys));
  for (const auto& [id, task] : data_.tasks) {
    if (task.ident == ident) return submitted(place, task, false);
  }
  const After comes_after = after_of(text(after));
  if (comes_after.unknown) {
    return {std::to_string(place + 1), {}, {}, "f", {}, "unknown:" + std::to_string(*comes_after.unknown), {}};
  }
  ModelTask& task = make_task(worker, arguments, place);
  task.open_after = comes_after.open();
  task.state = queued_state(task);
  if (!comes_after.all.empty()) data_.after[task.id] = comes_after.all;
  for (const auto& [dependency, is_open] : comes_after.all) find(dependency)->has_dependents = true;
  tell_task(task, {}, 0);
  if (comes_after.failed) {
    end_task(task, ModelTask::failed, task::Reason::dependency, not_succeeded(*comes_after.failed));
  }
  return submitted(place, task, true);
}

void ModelDatabase::finish(ModelTask& task, ModelTask::State state, std::optional<task::Reason> reason,
                           const std::string& message) {
  const int was = task.world();
  task.state = state;
  task.completed_at = now();
  task.reason = reason;
  task.message = message;
  task.held = task.cancelling = false;
  task.due.reset();
  task.retry_at.reset();
  task.env.reset();
  tell_task(task, was, task.world());
}

ModelDatabase::Lanes ModelDatabase::end_task(ModelTask& task, ModelTask::State state,
                                             std::optional<task::Reason> reason, const std::string& message) {
  finish(task, state, reason, message);
  return task.has_dependents ? settle({}, {task.id}) : Lanes();
}

// Its old fence is worth nothing.
int ModelDatabase::queue_again(ModelTask& task, int attempts, int lost) {
  const int was = task.world();
  task.due = task.not_before;
  task.state = queued_state(task);
  task.attempts += attempts;
  task.lost += lost;
  task.announced = false;
  task.fence.reset();
  task.started.reset();
  task.pid.reset();
  task.retry_at.reset();
  if (was == 1) tell_task(task, was, 0);
  return task.lane;
}

// Those that come after a completed one wait for one less, those after another fail, and what comes after them.
ModelDatabase::Lanes ModelDatabase::settle(const std::vector<std::int64_t>& done,
                                           const std::vector<std::int64_t>& failed) {
  Lanes lanes;
  for (auto& [id, dependencies] : data_.after) {
    ModelTask& task = data_.tasks.at(id);
    for (const std::int64_t each : done) {
      const auto found = dependencies.find(each);
      if (found == dependencies.end() || !std::exchange(found->second, false)) continue;
      --task.open_after;
      if (task.state != ModelTask::waiting) continue;
      task.state = queued_state(task);
      if (task.state == ModelTask::ready) lanes.push_back(task.lane);
    }
  }
  std::vector<std::int64_t> failing = failed;
  while (!failing.empty()) {
    const std::int64_t dependency = failing.back();
    failing.pop_back();
    for (const auto& [id, dependencies] : data_.after) {
      ModelTask& task = data_.tasks.at(id);
      if (!dependencies.contains(dependency) || task.state >= ModelTask::running) continue;
      finish(task, ModelTask::failed, task::Reason::dependency, not_succeeded(dependency));
      failing.push_back(id);
    }
  }
  return lanes;
}

ModelDatabase::Answer ModelDatabase::cancel(const Arguments& arguments) {
  guard(arguments);
  ModelTask* const task = find(arguments.number(2));
  if (task == nullptr) return one({{"outcome", "unknown"}});
  if (task->has_ended()) return one({{"outcome", "ended"}, {"state", task->world()}});
  if (task->state == ModelTask::running) {
    task->cancelling = true;
    return one(
        {{"outcome", "cancelling"}, {"state", task->world()}, {"worker", task->worker}, {"fence", *task->fence}});
  }
  end_task(*task, ModelTask::cancelled);
  return one({{"outcome", "cancelled"}, {"state", 4}});
}

ModelDatabase::Answer ModelDatabase::sweep(const Arguments& arguments) {
  guard(arguments);
  Lanes lanes;
  std::optional<std::int64_t> next;
  for (auto& [id, task] : data_.tasks) {
    if (task.state != ModelTask::waiting || !task.due) continue;
    if (*task.due > now()) {
      next = std::min(next.value_or(*task.due), *task.due);
    } else if (!task.held && task.open_after == 0) {
      task.state = ModelTask::ready;
      lanes.push_back(task.lane);
    }
  }
  if (data_.recovering_until && *data_.recovering_until <= now()) recovered();
  for (const auto& [id, worker] : data_.workers) {  // claims that were on their way when it was given up
    if (worker.state != ModelWorker::gone) continue;
    const Lanes more = give_up(worker, true);
    lanes.insert(lanes.end(), more.begin(), more.end());
  }
  return one({{"ready", counted(lanes)},
              {"removed", 0},
              {"events", 0},
              {"more", false},
              {"nextDueMs", next ? *next - now() : -1}});
}

}  // namespace duet::simulate
