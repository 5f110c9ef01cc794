#include <algorithm>
#include <array>

#include <boost/json/array.hpp>

#include "duet/rpc/value.h"
#include "simulate/model_database.h"
#include "task/postgres/records.h"

// What is read, and the numbers of events: 0001_8_reads.sql, 0001_9_1_upkeep.sql.

namespace duet::simulate {
namespace {

Argument text_of(const std::optional<std::int64_t>& number) {
  return number ? Argument(std::to_string(*number)) : Argument();
}

std::string flag_of(bool flag) { return flag ? "t" : "f"; }

}  // namespace

ModelDatabase::Answer ModelDatabase::number(const Arguments& arguments) {
  require_known_server();
  const auto most = static_cast<std::size_t>(arguments.number(0));
  const std::size_t many = std::min(most, data_.events.size() - data_.unnumbered);
  for (std::size_t i = 0; i < many; ++i) {
    ModelEvent& event = data_.events[data_.unnumbered++];
    event.seq = data_.next_seq++;
    data_.newest_event = std::max(data_.newest_event, event.at);
  }
  if (many > 0) notify("duet_events", "");
  return Result({"number_v1"}, {{std::to_string(many)}});
}

ModelDatabase::Answer ModelDatabase::read_events(const Arguments& arguments) {
  Result rows({"seq", "kind", "task", "params", "arrived_ms", "record"});
  std::int64_t left = arguments.number(1);
  const std::int64_t after = arguments.number(0);
  auto first = std::ranges::partition_point(
      data_.events, [after](const ModelEvent& event) { return event.seq && *event.seq <= after; });
  for (; first != data_.events.end() && first->seq && left-- > 0; ++first) {
    const ModelEvent& event = *first;
    Argument record;
    if (const ModelTask* task = find(event.task)) {
      const ModelLane& lane = data_.lanes.at(task->lane);
      record = rpc::to_text(Object{{"agent", lane.agent},
                                   {"group", lane.group},
                                   {"metadata", task->metadata},
                                   {"state", task->world()},
                                   {"attempts", task->attempts}});
    }
    const std::array<Argument, 6> cells{text_of(event.seq), event.kind, std::to_string(event.task),
                                        event.params,       {},         record};
    for (const Argument& cell : cells) rows.add(cell ? Result::Cell(*cell) : std::nullopt);
  }
  return rows;
}

ModelDatabase::Answer ModelDatabase::read_events_state(const Arguments& /*arguments*/) {
  return one({{"epoch", data_.epoch},
              {"oldest", data_.epoch_start},
              {"next", data_.next_seq},
              {"unnumbered", data_.unnumbered < data_.events.size()}});
}

ModelDatabase::Answer ModelDatabase::read_stats(const Arguments& /*arguments*/) {
  std::array<std::int64_t, 5> counts{};
  for (const auto& [id, task] : data_.tasks) ++counts.at(static_cast<std::size_t>(task.world()));
  return one({{"queued", counts[0]},
              {"running", counts[1]},
              {"completed", counts[2]},
              {"failed", counts[3]},
              {"cancelled", counts[4]}});
}

ModelDatabase::Answer ModelDatabase::read_task(const Arguments& arguments) {
  const std::vector<std::string> columns{"id",           "prompt",        "agent",      "grp",       "priority",
                                         "state",        "held",          "created_ms", "retry_ms",  "started_ms",
                                         "completed_ms", "pid",           "exit_code",  "signal",    "result",
                                         "error_reason", "error_message", "attempts",   "spared",    "labels",
                                         "metadata",     "on_lost",       "late",       "cancelling"};
  const ModelTask* const task = find(arguments.number(0));
  if (task == nullptr) return Result(columns);
  const ModelLane& lane = data_.lanes.at(task->lane);
  return Result(columns, {{std::to_string(task->id),
                           task->prompt,
                           lane.agent,
                           lane.group,
                           std::to_string(task->priority),
                           std::to_string(task->world()),
                           flag_of(task->held),
                           std::to_string(task->created),
                           text_of(task->retry_at),
                           text_of(task->started),
                           text_of(task->completed_at),
                           text_of(task->pid),
                           text_of(task->exit_code),
                           task->signal,
                           task->result,
                           task->reason ? Argument(std::to_string(static_cast<int>(*task->reason))) : Argument(),
                           task->message,
                           std::to_string(task->attempts),
                           std::to_string(task->spared),
                           task->labels,
                           task->metadata,
                           std::to_string(task->on_lost),
                           task->late,
                           flag_of(task->cancelling)}});
}

ModelDatabase::Answer ModelDatabase::read_known(const Arguments& arguments) {
  Result rows({"id"});
  for (const std::int64_t id : arguments.numbers(0)) {
    if (find(id) != nullptr) rows.add(std::to_string(id));
  }
  return rows;
}

ModelDatabase::Answer ModelDatabase::read_running(const Arguments& /*arguments*/) {
  Result rows({"task", "attempt", "place"});
  for (const auto& [id, task] : data_.tasks) {
    if (task.state != ModelTask::running || !task.announced) continue;
    std::size_t place = 0;
    for (int attempt = 1; attempt <= task.attempts; ++attempt) {
      const auto found = data_.output.find({id, attempt});
      if (found != data_.output.end()) place += found->second.bytes.size();
    }
    for (const std::string& cell : {std::to_string(id), std::to_string(task.attempts), std::to_string(place)}) {
      rows.add(cell);
    }
  }
  return rows;
}

}  // namespace duet::simulate
