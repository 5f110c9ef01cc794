#include "simulate/model_database.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include <boost/json/array.hpp>

#include "duet/rpc/value.h"

namespace duet::simulate {

namespace json = boost::json;
using task::postgres::Fault;

ModelDatabase::Answer ModelDatabase::call(std::string_view function, const std::vector<Argument>& arguments) {
  using Function = Answer (ModelDatabase::*)(const Arguments&);
  static const std::map<std::string_view, Function> functions{
      {"hello_v1", &ModelDatabase::hello},
      {"renew_v1", &ModelDatabase::renew},
      {"recover_v1", &ModelDatabase::recover},
      {"attach_v1", &ModelDatabase::attach},
      {"beat_v1", &ModelDatabase::beat},
      {"wait_v1", &ModelDatabase::wait},
      {"wake_v1", &ModelDatabase::wake},
      {"nudge_v1", &ModelDatabase::nudge},
      {"silence_v1", &ModelDatabase::silence},
      {"lose_v1", &ModelDatabase::lose},
      {"leave_v1", &ModelDatabase::leave},
      {"submit_v1", &ModelDatabase::submit},
      {"report_v1", &ModelDatabase::report},
      {"cancel_v1", &ModelDatabase::cancel},
      {"sweep_v1", &ModelDatabase::sweep},
      {"number_v1", &ModelDatabase::number},
      {"read_events_v1", &ModelDatabase::read_events},
      {"read_events_state_v1", &ModelDatabase::read_events_state},
      {"read_stats_v1", &ModelDatabase::read_stats},
      {"read_task_v1", &ModelDatabase::read_task},
      {"read_known_v1", &ModelDatabase::read_known},
      {"read_running_v1", &ModelDatabase::read_running},
  };
  const auto found = functions.find(function);
  if (found == functions.end()) throw std::logic_error("the model has no " + std::string(function));
  note_unsynced(function, Arguments(arguments));
  try {
    return (this->*found->second)(Arguments(arguments));
  } catch (const Refused& refused) {
    return tl::unexpected(Fault{Fault::Kind::refused, refused.state, refused.message});
  }
}

ModelDatabase::Answer ModelDatabase::one(const Object& object) { return Result({"answer"}, {{rpc::to_text(object)}}); }

ModelWorker* ModelDatabase::caller(const Arguments& arguments) {
  const auto found = data_.workers.find(arguments.number(0));
  const bool is_he = found != data_.workers.end() && found->second.incarnation == arguments.text(1) &&
                     found->second.state != ModelWorker::gone;
  return is_he ? &found->second : nullptr;
}

ModelWorker& ModelDatabase::guard(const Arguments& arguments) {
  ModelWorker* const worker = caller(arguments);
  if (worker == nullptr) throw Refused{"DU001", "fenced"};
  require_known_server();
  return *worker;
}

ModelWorker& ModelDatabase::who_has_told(const Arguments& arguments) {
  ModelWorker* const worker = caller(arguments);
  if (worker == nullptr) throw Refused{"DU001", "fenced"};
  if (worker->told_timeline != server_timeline_) throw Refused{"DU004", "untold"};
  return *worker;
}

void ModelDatabase::require_known_server() const {
  if (server_timeline_ > data_.timeline) throw Refused{"DU002", "renew: the server is on a new timeline"};
}

ModelTask* ModelDatabase::find(std::int64_t id) {
  const auto found = data_.tasks.find(id);
  return found == data_.tasks.end() ? nullptr : &found->second;
}

void ModelDatabase::tell_task(const ModelTask& task, std::optional<int> was, int becomes, const std::string& kind) {
  static constexpr std::array<const char*, 5> words{"queued", "running", "completed", "failed", "cancelled"};
  static constexpr std::array<const char*, 5> kinds{"taskQueued", "taskStarted", "taskCompleted", "taskFailed",
                                                    "taskCancelled"};
  const auto place = static_cast<std::size_t>(becomes);
  Object params{{"taskId", "task-" + std::to_string(task.id)},
                {"state", words.at(place)},
                {"agent", data_.lanes.at(task.lane).agent},
                {"attempts", task.attempts}};
  if (becomes > 1 && task.exit_code) params["exitCode"] = *task.exit_code;
  data_.events.push_back({.id = ++data_.last_event,
                          .task = task.id,
                          .at = now(),
                          .was = was,
                          .becomes = becomes,
                          .kind = kind.empty() ? kinds.at(place) : kind,
                          .params = rpc::to_text(params)});
}

void ModelDatabase::tell(const std::string& kind, const std::string& params) {
  data_.events.push_back({.id = ++data_.last_event, .at = now(), .kind = kind, .params = params});
}

void ModelDatabase::tell_worker(const ModelWorker& worker) {
  static constexpr std::array<const char*, 4> words{"live", "draining", "silent", "gone"};
  tell("workerChanged",
       rpc::to_text(Object{{"worker", worker.name}, {"state", words.at(static_cast<std::size_t>(worker.state))}}));
}

bool ModelDatabase::serves(const ModelWorker& worker, const ModelLane& lane) const {
  const auto has = [](const std::vector<std::string>& all, const std::string& one) {
    return std::ranges::find(all, one) != all.end();
  };
  const bool has_labels =
      std::ranges::all_of(lane.needs, [&](const std::string& label) { return has(worker.labels, label); });
  return has_labels &&
         (has(worker.accepts, lane.agent) || (lane.submitter == worker.name && has(worker.agents, lane.agent)));
}

int ModelDatabase::lane_of(const ModelLane& lane) {
  for (const auto& [id, known] : data_.lanes) {
    if (known == lane) return id;
  }
  const int id = static_cast<int>(data_.lanes.size()) + 1;
  data_.lanes[id] = lane;
  return id;
}

ModelTask::State ModelDatabase::queued_state(const ModelTask& task) const {
  const bool waits = task.held || task.open_after > 0 || (task.due && *task.due > now());
  return waits ? ModelTask::waiting : ModelTask::ready;
}

std::map<int, int> ModelDatabase::count_of(const Lanes& lanes) {
  std::map<int, int> counts;
  for (const int lane : lanes) ++counts[lane];
  return counts;
}

json::array ModelDatabase::counted(const Lanes& lanes) {
  json::array all;
  for (const auto& [lane, count] : count_of(lanes)) all.push_back(Object{{"lane", lane}, {"count", count}});
  return all;
}

// Beats and waits are not synced by themselves, but with the next call that is. A beat of one that was silent tells an
// event, and is taken for such a call.
void ModelDatabase::note_unsynced(std::string_view function, const Arguments& arguments) {
  static const std::set<std::string_view> writes_nothing{"hello_v1", "wake_v1", "nudge_v1"};
  if (writes_nothing.contains(function) || function.starts_with("read_")) return;
  const bool is_unsynced = function == "beat_v1" || function == "wait_v1";
  const ModelWorker* const worker = is_unsynced ? caller(arguments) : nullptr;
  if (worker == nullptr || worker->state == ModelWorker::silent) return unsynced_.clear();
  unsynced_.push_back({clock_.now(), *worker});
}

void ModelDatabase::crash() {
  constexpr std::chrono::milliseconds until_written{600};  // three times wal_writer_delay
  for (auto lost = unsynced_.rbegin(); lost != unsynced_.rend() && clock_.now() - lost->at < until_written; ++lost) {
    ModelWorker& worker = data_.workers.at(lost->before.id);
    worker.beat = lost->before.beat;
    worker.waiting = lost->before.waiting;
  }
  unsynced_.clear();
}

void ModelDatabase::fail_over(Data data) {
  unsynced_.clear();
  data_ = std::move(data);
  ++server_timeline_;
}

}  // namespace duet::simulate
