#include <algorithm>

#include <boost/json/array.hpp>

#include "duet/rpc/value.h"
#include "simulate/model_database.h"
#include "task/postgres/argument.h"
#include "task/postgres/records.h"

// A server that takes over: 0001_9_2_failover.sql.

namespace duet::simulate {

namespace json = boost::json;
using task::postgres::flag_in;
using task::postgres::number_in;
using task::postgres::text_in;

namespace {

constexpr std::int64_t passed_over = 1'000'000;

json::array list_of(const Argument& text) { return text ? rpc::parse_value(*text).as_array() : json::array(); }

// The same call of report_v1 as recover_v1 makes it: of starts alone.
std::vector<Argument> report_of(const Arguments& arguments, const json::array& running, std::int64_t timeline) {
  json::array starts;
  for (const json::value& each : running) {
    if (each.as_object().contains("pid")) starts.push_back(each);
  }
  std::vector<Argument> call{arguments.at(0), arguments.at(1), rpc::to_text(starts)};
  call.insert(call.end(), 18, "{}");  // no ends
  call.insert(call.end(), {Argument(), "0", Argument(), Argument(), Argument(), Argument(), std::to_string(timeline)});
  return call;
}

}  // namespace

// Ids, fences and event numbers that the old primary may have given out are passed over.
ModelDatabase::Answer ModelDatabase::renew(const Arguments& arguments) {
  if (server_timeline_ < std::max(data_.timeline, arguments.number(0))) throw Refused{"DU002", "timeline"};
  const bool is_new = server_timeline_ > data_.timeline;
  if (is_new) {
    const std::int64_t passed = passed_over * (server_timeline_ - data_.timeline);
    data_.last_task += passed;
    data_.last_fence += passed;
    data_.renewed_fence = data_.last_fence;
    data_.last_event += passed;
    data_.timeline = server_timeline_;
    data_.epoch = "epoch-" + std::to_string(server_timeline_);
    data_.next_seq += passed;
    data_.epoch_start = data_.next_seq;
    std::optional<std::int64_t> longest;
    for (auto& [id, worker] : data_.workers) {
      if (worker.state < ModelWorker::silent) longest = std::max(longest.value_or(0), worker.lease);
      if (worker.state != ModelWorker::gone) worker.recovering = true;
    }
    data_.recovering_until = longest ? std::optional(now() + *longest) : std::nullopt;
  }
  return one({{"renewed", is_new},
              {"timeline", data_.timeline},
              {"epoch", data_.epoch},
              {"nextSeq", data_.next_seq},
              {"recovering", is_recovering()}});
}

void ModelDatabase::recovered() {
  data_.recovering_until.reset();
  for (auto& [id, worker] : data_.workers) worker.recovering = false;
}

// A task that the database does not know. False: its key has been given anew since.
bool ModelDatabase::make_again(const ModelWorker& worker, const Object& told) {
  const std::int64_t id = number_in(told, "task");
  const std::string key = text_in(told, "key");
  const std::string ident = ident_of("restored " + std::to_string(id), key);
  if (std::ranges::any_of(data_.tasks, [&](const auto& each) { return each.second.ident == ident; })) return false;
  ModelTask& made = data_.tasks[id];
  made.id = id;
  made.ident = ident;
  made.key = key;
  made.restored = true;
  made.created = now();
  made.prompt = told.contains("prompt") ? text_in(told, "prompt") : "\"\"";
  made.metadata = told.contains("metadata") ? text_in(told, "metadata") : "{}";
  made.labels = text_in(told, "labels");
  made.body = text_in(told, "body");
  made.priority = number_in(told, "priority");
  made.retries = static_cast<int>(number_in(told, "retries"));
  made.on_lost = static_cast<int>(number_in(told, "onLost"));
  made.state = ModelTask::running;
  made.fence = number_in(told, "fence");
  made.worker = worker.id;
  made.attempts = static_cast<int>(number_in(told, "attempt"));
  made.spared = static_cast<int>(number_in(told, "spared"));
  made.cancelling = flag_in(told, "cancelling");
  if (told.contains("env")) made.env = text_in(told, "env");
  made.lane = lane_of({text_in(told, "agent"), text_in(told, "group"), task::postgres::split(text_in(told, "needs")),
                       text_in(told, "submitter")});
  tell_task(made, {}, 0);
  return true;
}

// Makes an attempt that its worker knows of what the row says, if the row is older than it. What was claimed since the
// failover is as the row says.
bool ModelDatabase::restore(const ModelWorker& worker, const Object& told) {
  const std::int64_t fence = number_in(told, "fence");
  const auto attempt = static_cast<int>(number_in(told, "attempt"));
  const bool may = fence <= data_.renewed_fence;
  ModelTask* const task = find(number_in(told, "task"));
  if (task == nullptr) return may && told.contains("body") && make_again(worker, told);
  if (task->runs_under(fence) && task->worker == worker.id) {
    task->cancelling = task->cancelling || flag_in(told, "cancelling");
    return true;
  }
  const bool is_newer = task->has_ended() || task->attempts > attempt || (task->fence && *task->fence > fence) ||
                        (task->state < ModelTask::running && task->attempts >= attempt);
  if (is_newer || !may) return false;
  const int was = task->world();
  task->state = ModelTask::running;
  task->worker = worker.id;
  task->fence = fence;
  task->attempts = attempt;
  task->spared = std::max(task->spared, static_cast<int>(number_in(told, "spared")) - task->lost);
  task->announced = false;
  task->cancelling = task->cancelling || flag_in(told, "cancelling");
  task->open_after = 0;
  data_.after.erase(task->id);
  task->due.reset();
  task->retry_at.reset();
  task->started.reset();
  task->pid.reset();
  if (was == 1) tell_task(*task, was, 0);
  return true;
}

// How far it is here.
json::array ModelDatabase::output_of(const json::array& running) const {
  json::array list;
  for (const json::value& each : running) {
    const Object& told = each.as_object();
    const auto found = data_.output.find({number_in(told, "task"), static_cast<int>(number_in(told, "attempt"))});
    const std::size_t end = found == data_.output.end() ? 0 : found->second.bytes.size();
    list.push_back(json::array{number_in(told, "fence"), end});
  }
  return list;
}

ModelDatabase::Answer ModelDatabase::recover(const Arguments& arguments) {
  ModelWorker& worker = guard(arguments);
  const json::array running = list_of(arguments.at(2));
  std::vector<const Object*> all;
  for (const json::value& each : running) all.push_back(&each.as_object());
  std::ranges::stable_sort(
      all, {}, [](const Object* told) { return std::pair(number_in(*told, "task"), number_in(*told, "fence")); });
  json::array fenced;
  for (const Object* const told : all) {
    if (!restore(worker, *told)) fenced.push_back(number_in(*told, "fence"));
  }
  worker.told_timeline = data_.timeline;
  const std::vector<Argument> call = report_of(arguments, running, worker.told_timeline);
  report(Arguments(call));
  const bool have_all_told = std::ranges::all_of(data_.workers, [this](const auto& each) {
    return each.second.state >= ModelWorker::silent || each.second.told_timeline >= data_.timeline;
  });
  if (have_all_told) recovered();
  return one({{"fenced", fenced}, {"output", output_of(running)}, {"recovering", is_recovering()}});
}

}  // namespace duet::simulate
