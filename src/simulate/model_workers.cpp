#include <algorithm>

#include <boost/json/array.hpp>

#include "duet/rpc/value.h"
#include "simulate/model_database.h"

// Who is there: 0001_3_workers.sql.

namespace duet::simulate {

namespace json = boost::json;

ModelDatabase::Answer ModelDatabase::hello(const Arguments& /*arguments*/) {
  return one({{"version", 1},
              {"oldest", 1},
              {"project", "site"},
              {"queue", "queue"},
              {"system", "5"},
              {"timeline", data_.timeline},
              {"serverTimeline", server_timeline_},
              {"epoch", data_.epoch},
              {"nextSeq", data_.next_seq},
              {"newestEventMs", data_.newest_event},
              {"recovery", false},
              {"adopted", true}});
}

json::array ModelDatabase::running_of(const ModelWorker& worker) const {
  json::array running;
  for (const auto& [id, task] : data_.tasks) {
    if (task.state != ModelTask::running || task.worker != worker.id) continue;
    running.push_back(Object{{"task", id},
                             {"fence", *task.fence},
                             {"attempt", task.attempts},
                             {"started", task.announced},
                             {"cancelling", task.cancelling},
                             {"onLost", task.on_lost},
                             {"retries", task.retries},
                             {"spared", task.spared + task.lost},
                             {"agent", data_.lanes.at(task.lane).agent}});
  }
  return running;
}

bool ModelDatabase::has_to_repeat(const ModelWorker& worker) const {
  return std::ranges::any_of(data_.tasks, [&worker](const auto& each) {
    const ModelTask& task = each.second;
    return task.worker == worker.id && task.state == ModelTask::running && task.on_lost == 1;
  });
}

ModelDatabase::Answer ModelDatabase::attach(const Arguments& arguments) {
  require_known_server();
  std::vector<std::string> known = arguments.texts(2);
  known.push_back(arguments.text(3));
  ModelWorker* worker = nullptr;
  for (auto& [id, each] : data_.workers) {
    const bool is_his = each.state != ModelWorker::gone && std::ranges::find(known, each.incarnation) != known.end();
    if (is_his) worker = &each;
  }
  for (const auto& [id, each] : data_.workers) {
    if (&each != worker && each.name == arguments.text(0) && each.state != ModelWorker::gone) {
      throw Refused{"DU003", R"({"refused":"name-taken"})"};
    }
  }
  const bool takes_over = worker != nullptr;
  if (!takes_over) {
    const std::int64_t id = ++data_.last_worker;
    worker = &data_.workers[id];
    worker->id = id;
    worker->recovering = data_.recovering_until.has_value();
    worker->told_timeline = data_.timeline;
  } else {
    ++worker->beat;
  }
  worker->name = arguments.text(0);
  worker->incarnation = arguments.text(3);
  worker->state = ModelWorker::live;
  worker->waiting = false;
  worker->lease = arguments.number(5);
  worker->lost_after = arguments.number(6);
  worker->labels = arguments.texts(7);
  worker->labels.push_back("name=" + worker->name);
  worker->accepts = arguments.texts(8);
  worker->agents = arguments.texts(9);
  worker->slots = arguments.number(10);
  tell_worker(*worker);
  return one({{"worker", worker->id},
              {"name", worker->name},
              {"took_over", takes_over},
              {"recovering",
               worker->told_timeline < data_.timeline || (!takes_over && arguments.at(1) && data_.recovering_until)},
              {"running", running_of(*worker)}});
}

ModelDatabase::Answer ModelDatabase::beat(const Arguments& arguments) {
  ModelWorker& worker = who_has_told(arguments);
  const ModelWorker::State was = worker.state;
  ++worker.beat;
  if (arguments.at(2)) worker.waiting = arguments.flag(2);
  worker.slots = arguments.number(3);
  worker.state = worker.slots == 0 ? ModelWorker::draining : ModelWorker::live;
  worker.labels = arguments.texts(4);
  worker.labels.push_back("name=" + worker.name);
  worker.accepts = arguments.texts(5);
  worker.agents = arguments.texts(6);
  worker.lease = arguments.number(7);
  worker.lost_after = arguments.number(8);
  if (was != worker.state) tell_worker(worker);
  return one(beaten(worker));
}

// What a beat brings.
ModelDatabase::Object ModelDatabase::beaten(const ModelWorker& worker) const {
  json::array workers;
  std::int64_t shortest = worker.lease;
  std::set<std::string> agents;
  for (const auto& [id, each] : data_.workers) {
    if (each.state == ModelWorker::gone) continue;
    workers.push_back(Object{{"id", id},
                             {"name", each.name},
                             {"beat", each.beat},
                             {"state", static_cast<int>(each.state)},
                             {"runs", true},
                             {"lease", each.lease},
                             {"lostAfter", each.lost_after},
                             {"toRepeat", each.state == ModelWorker::silent && has_to_repeat(each)}});
    agents.insert(each.accepts.begin(), each.accepts.end());
    if (each.state < ModelWorker::silent) shortest = std::min(shortest, each.lease);
  }
  const json::array mine = running_of(worker);
  json::array cancels;
  for (const json::value& each : mine) {
    if (each.at("cancelling").as_bool()) cancels.push_back(each);
  }
  return {{"cancels", cancels},
          {"workers", workers},
          {"mine", mine},
          {"shortestLease", shortest},
          {"epoch", data_.epoch},
          {"timeline", data_.timeline},
          {"serverTimeline", server_timeline_},
          {"newestEventMs", data_.newest_event},
          {"agents", json::array(agents.begin(), agents.end())},
          {"unnumbered", data_.unnumbered < data_.events.size()},
          {"draining", false},
          {"recovering", worker.recovering}};
}

ModelDatabase::Answer ModelDatabase::wait(const Arguments& arguments) {
  guard(arguments).waiting = arguments.flag(2);
  return Result({"wait_v1"}, {{""}});
}

// Twice as many of those who wait as there are new tasks.
ModelDatabase::Answer ModelDatabase::wake(const Arguments& arguments) {
  guard(arguments);
  const std::vector<std::int64_t> lanes = arguments.numbers(2);
  const std::vector<std::int64_t> counts = arguments.numbers(3);
  std::int64_t woken = 0;
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    std::int64_t left = 2 * counts.at(i);
    const auto lane = data_.lanes.find(static_cast<int>(lanes[i]));
    if (lane == data_.lanes.end()) continue;  // a failover lost it
    for (auto& [id, worker] : data_.workers) {
      const bool may_be_woken =
          worker.waiting && worker.state == ModelWorker::live && worker.slots > 0 && serves(worker, lane->second);
      if (!may_be_woken || left-- <= 0) continue;
      worker.waiting = false;
      notify("duet_w" + std::to_string(id), "task");
      ++woken;
    }
  }
  return Result({"wake_v1"}, {{std::to_string(woken)}});
}

ModelDatabase::Answer ModelDatabase::nudge(const Arguments& arguments) {
  guard(arguments);
  notify("duet_w" + arguments.text(2), arguments.text(3));
  return Result({"nudge_v1"}, {{""}});
}

// A cancelled one is cancelled. One that may be lost is tried again, or is lost for good; any other waits for its
// worker until `all` are given up.
ModelDatabase::Lanes ModelDatabase::give_up(const ModelWorker& worker, bool all) {
  Lanes lanes;
  const auto add = [&lanes](const Lanes& more) { lanes.insert(lanes.end(), more.begin(), more.end()); };
  for (auto& [id, task] : data_.tasks) {
    if (task.state != ModelTask::running || task.worker != worker.id) continue;
    const bool may_be_lost = task.is_for(task::OnLost::retry);
    if (task.cancelling && (all || may_be_lost)) {
      add(end_task(task, ModelTask::cancelled));
    } else if (may_be_lost && task.lost + 1 >= ModelTask::most_lost) {
      ++task.lost;
      add(end_task(task, ModelTask::failed, task::Reason::lost, "three attempts were lost with their workers"));
    } else if (may_be_lost) {
      lanes.push_back(queue_again(task, 0, 1));
    } else if (all) {
      add(end_task(task, ModelTask::failed, task::Reason::lost, "its worker was not heard of again"));
    }
  }
  return lanes;
}

ModelWorker* ModelDatabase::unmoved(const Arguments& arguments) {
  const ModelWorker& asking = guard(arguments);
  const auto found = data_.workers.find(arguments.number(2));
  const bool is_meant = found != data_.workers.end() && found->second.beat == arguments.number(3) &&
                        found->second.state != ModelWorker::gone && found->first != asking.id;
  return is_meant ? &found->second : nullptr;
}

ModelDatabase::Answer ModelDatabase::silence(const Arguments& arguments) {
  ModelWorker* const worker = unmoved(arguments);
  if (worker == nullptr) return one({{"silent", false}, {"ready", json::array()}});
  if (worker->state != ModelWorker::silent) {
    worker->state = ModelWorker::silent;
    worker->waiting = false;
    tell_worker(*worker);
  }
  return one({{"silent", true}, {"ready", counted(give_up(*worker, false))}});
}

ModelDatabase::Answer ModelDatabase::lose(const Arguments& arguments) {
  ModelWorker* const worker = unmoved(arguments);
  if (worker == nullptr || worker->state != ModelWorker::silent) {
    return one({{"lost", false}, {"ready", json::array()}});
  }
  worker->state = ModelWorker::gone;
  tell_worker(*worker);
  return one({{"lost", true}, {"ready", counted(give_up(*worker, true))}});
}

ModelDatabase::Answer ModelDatabase::leave(const Arguments& arguments) {
  ModelWorker* const worker = caller(arguments);
  if (worker == nullptr) return one({{"left", false}, {"ready", json::array()}});
  if (worker->told_timeline != server_timeline_) throw Refused{"DU004", "untold"};
  worker->state = ModelWorker::gone;
  worker->waiting = false;
  tell_worker(*worker);
  Lanes lanes;
  for (auto& [id, task] : data_.tasks) {
    if (task.state != ModelTask::running || task.worker != worker->id || task.announced) continue;
    if (task.cancelling) {
      --task.attempts;  // it never began
      end_task(task, ModelTask::cancelled);
    } else {
      lanes.push_back(queue_again(task, -1, 0));
    }
  }
  const Lanes more = give_up(*worker, true);
  lanes.insert(lanes.end(), more.begin(), more.end());
  return one({{"left", true}, {"ready", counted(lanes)}});
}

}  // namespace duet::simulate
