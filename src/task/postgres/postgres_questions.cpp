#include <algorithm>
#include <memory>
#include <utility>

#include <boost/json/array.hpp>

#include "duet/base/utc_text.h"
#include "duet/rpc/value.h"
#include "task/handles.h"
#include "task/postgres/postgres_queue.h"
#include "task/postgres/records.h"
#include "task/refusal.h"

// What is read of the queue.

namespace duet::task::postgres {
namespace {

namespace json = boost::json;

std::string_view word_of(ListQuery::Sort sort) {
  switch (sort) {
    case ListQuery::Sort::newest:
      return "newest";
    case ListQuery::Sort::oldest:
      return "oldest";
    case ListQuery::Sort::priority:
      return "priority";
    case ListQuery::Sort::ended:
      break;
  }
  return "ended";
}

// PostgreSQL takes no such text, so nothing is found by it.
bool asks_for_zero_byte(const ListQuery& query) {
  const auto has_one = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  return has_one(query.group.value_or("")) || has_one(query.agent.value_or("")) ||
         std::ranges::any_of(query.labels, [&](const auto& label) { return has_one(label.first + label.second); });
}

std::string query_text(const ListQuery& query) {
  constexpr std::size_t most = 1'000'000;
  json::object asked{{"limit", std::min(query.limit, most)}, {"sort", word_of(query.sort)}};
  if (query.state) asked["state"] = static_cast<int>(*query.state);
  if (query.from) asked["from"] = *query.from;
  if (query.group) asked["group"] = *query.group;
  if (query.agent) asked["agent"] = *query.agent;
  if (query.since) asked["since"] = base::milliseconds_of(*query.since);
  if (query.of_rules) asked["ofRules"] = true;
  if (!query.labels.empty()) asked["labels"] = to_json(query.labels);
  return rpc::to_text(asked);
}

std::size_t count_in(const json::object& object, std::string_view name) {
  return static_cast<std::size_t>(std::max<std::int64_t>(number_in(object, name), 0));
}

}  // namespace

// A long prompt is kept apart from what changes.
void PostgresQueue::find(TaskId id, const FoundTask& found) {
  if (!membership_.is_joined()) return found(tl::unexpected(not_joined()));
  line_.call(
      Line::Way::work, "read_task_v1", {argument_of(id)}, lifetime_.bind([this, id, found](const Answer& answer) {
        if (!answer) return found(tl::unexpected(error_of(answer.error())));
        if (answer->rows() == 0) return found(tl::unexpected(unknown_task(to_text(id))));
        const auto task = std::make_shared<Task>(task_of(*answer, 0));
        constexpr std::size_t longest_character = 4;
        if (task->prompt.size() + longest_character <= kept_prompt) return found(*task);
        ask("read_request_v1", {argument_of(id)}, [task, found](const tl::expected<Object, rpc::Error>& request) {
          if (!request) return found(tl::unexpected(request.error()));
          const std::string body = text_in(*request, "body");
          if (!body.empty()) task->prompt = from_body(body).prompt;
          found(*task);
        });
      }));
}

void PostgresQueue::list(const ListQuery& query, const std::function<bool(const Task&)>& each,
                         const std::function<void(const std::optional<rpc::Error>&)>& done) {
  if (!membership_.is_joined()) return done(not_joined());
  if (asks_for_zero_byte(query)) return done(std::nullopt);
  line_.call(Line::Way::work, "read_tasks_v1", {query_text(query)}, lifetime_.bind([each, done](const Answer& answer) {
    if (!answer) return done(error_of(answer.error()));
    for (std::size_t row = 0; row < answer->rows(); ++row) {
      if (!each(task_of(*answer, row))) break;
    }
    done(std::nullopt);
  }));
}

// Counts are those of the numbered events: whoever asks has what is there numbered first.
void PostgresQueue::look(const Stood& stood) {
  if (!membership_.is_joined()) return stood(tl::unexpected(not_joined()));
  constexpr int most_numbered = 10'000;
  line_.call(Line::Way::work, "number_v1", {argument_of(most_numbered)}, [](const Answer&) {});
  ask("read_stats_v1", {}, [this](const tl::expected<Object, rpc::Error>& counts) {
    if (counts) take_counts(*counts);
  });
  ask("read_queue_v1", {}, [this, stood](const tl::expected<Object, rpc::Error>& queue) {
    if (!queue) return stood(tl::unexpected(queue.error()));
    events_.look();
    Standing standing{.paused = flag_in(*queue, "paused"), .counts = counts_};
    standing.groups[default_group] = {};
    for (const auto& [name, group] : settings_.groups) standing.groups[name].paused = group.paused;
    for (const json::value& value : array_in(*queue, "groups")) {
      const Object& told = value.as_object();
      Standing::Group& group = standing.groups[text_in(told, "name")];
      group.running = count_in(told, "running");
      group.queued = count_in(told, "queued");
      if (told.contains("paused") && told.at("paused").is_bool()) group.paused = told.at("paused").get_bool();
    }
    for (const json::value& value : array_in(*queue, "agents")) {
      const Object& told = value.as_object();
      const std::string name = text_in(told, "name");
      standing.agents[name] = {count_in(told, "running"), count_in(told, "queued")};
      if (const auto until = optional_in(told, "heldUntil")) {
        standing.holds[name] = {time_of(*until), static_cast<TaskId>(number_in(told, "heldTask")),
                                text_in(told, "heldText")};
      }
    }
    stood(standing);
  });
}

void PostgresQueue::explain(TaskId id,
                            const std::function<void(const tl::expected<Explanation, rpc::Error>&)>& explained) {
  find(id, [this, id, explained](const tl::expected<Task, rpc::Error>& task) {
    if (!task) return explained(tl::unexpected(task.error()));
    Explanation explanation{.id = id, .state = task->progress.state, .text = state_text(*task)};
    if (task->progress.state != State::queued) return explained(explanation);
    ask("read_explain_v1", {argument_of(id)},
        [this, explanation, explained](const tl::expected<Object, rpc::Error>& facts) mutable {
          if (!facts) return explained(tl::unexpected(facts.error()));
          explanation.reasons = reasons_of(explanation.id, *facts);
          explanation.text = text_of(explanation.reasons);
          explained(explanation);
        });
  });
}

// What it waits for by itself comes first, then what is in the way of all, then its turn.
std::vector<WaitReason> PostgresQueue::reasons_of(TaskId id, const Object& facts) const {
  std::vector<WaitReason> reasons;
  const base::UtcTime now = loop_.clock().utc();
  if (flag_in(facts, "claimed")) return {{.why = Why::starting, .text = "it is being started"}};
  if (flag_in(facts, "cancelling")) reasons.push_back({.why = Why::cancelling, .text = "it is being cancelled"});
  if (flag_in(facts, "held")) reasons.push_back(held_reason(id));
  for (const json::value& value : array_in(facts, "after")) {
    const Object& after = value.as_object();
    reasons.push_back(
        after_reason(id, static_cast<TaskId>(number_in(after, "task")), static_cast<State>(number_in(after, "state"))));
  }
  const auto not_before = optional_in(facts, "notBefore");
  if (not_before && time_of(*not_before) > now) {
    reasons.push_back(not_before_reason(id, time_of(*not_before), time_of(*not_before) - now));
  }
  const auto retry = optional_in(facts, "retryAt");
  if (retry && time_of(*retry) > now) reasons.push_back(retry_reason(now, time_of(*retry) - now));
  explain_doors(facts, reasons);
  const std::size_t before = count_in(facts, "before");
  if (reasons.empty() || before > 0) reasons.push_back(turn_reason(id, before));
  return reasons;
}

void PostgresQueue::explain_doors(const Object& facts, std::vector<WaitReason>& reasons) const {
  const std::string agent = text_in(facts, "agent");
  const std::string group = text_in(facts, "group");
  if (flag_in(facts, "queuePaused")) {
    reasons.push_back({.why = Why::paused, .text = "the queue is paused", .change = "resume it: queue resume"});
  }
  const auto settings = settings_.groups.find(group);
  const bool is_set = settings != settings_.groups.end();
  const json::value* const paused = facts.if_contains("groupPaused");
  const bool is_paused =
      paused != nullptr && paused->is_bool() ? paused->get_bool() : is_set && settings->second.paused;
  if (is_paused) reasons.push_back(group_paused_reason(group));
  if (const auto until = optional_in(facts, "heldUntil")) {
    reasons.push_back(agent_held_reason(agent, time_of(*until), loop_.clock().utc(),
                                        static_cast<TaskId>(number_in(facts, "heldTask"))));
  }
  if (const std::string missing = text_in(facts, "missing"); !missing.empty()) {
    reasons.push_back({.why = Why::worker,
                       .text = missing,
                       .change = "start a daemon that has what it needs and accepts its agent, or undrain one; see "
                                 "cluster status"});
  } else if (flag_in(facts, "recovering")) {
    reasons.push_back({.why = Why::worker,
                       .text = "after a failover the queue waits for all workers to tell what they run",
                       .change = "wait for a lease at most, or run 'cluster forget' for one that is gone for good"});
  } else if (const json::value* const slots = facts.if_contains("slots");
             slots != nullptr && slots->is_object() && number_in(slots->get_object(), "free") == 0) {
    // Of all workers that could take it.
    reasons.push_back(slot_reason(count_in(slots->get_object(), "used"), count_in(slots->get_object(), "all")));
  }
  const std::size_t in_group = count_in(facts, "runningInGroup");
  if (is_set && settings->second.max_running && in_group >= *settings->second.max_running) {
    reasons.push_back(group_slot_reason(group, in_group, *settings->second.max_running));
  }
  const Agent* const known = agents_.find(agent);
  const std::size_t for_agent = count_in(facts, "runningForAgent");
  if (known != nullptr && known->max_running && for_agent >= *known->max_running) {
    reasons.push_back(agent_slot_reason(agent, for_agent, *known->max_running));
  }
}

void PostgresQueue::give_handle(TaskId id, const Handle& given) {
  if (!membership_.is_joined()) return given(tl::unexpected(not_joined()));
  changes_.call("handle_v1", {argument_of(id), new_handle(id)}, lifetime_.bind([id, given](const Answer& answer, bool) {
    if (!answer) return given(tl::unexpected(error_of(answer.error())));
    const std::string handle(answer->text());
    if (handle.empty()) return given(tl::unexpected(unknown_task(to_text(id))));
    given(handle);
  }));
}

void PostgresQueue::find_handle(const std::string& handle,
                                const std::function<void(const tl::expected<TaskId, rpc::Error>&)>& found) {
  if (handle.find('\0') != handle.npos) return found(tl::unexpected(unknown_task(handle)));
  if (!membership_.is_joined()) return found(tl::unexpected(not_joined()));
  line_.call(Line::Way::work, "read_handle_v1", {handle}, lifetime_.bind([handle, found](const Answer& answer) {
    if (!answer) return found(tl::unexpected(error_of(answer.error())));
    const auto id = answer->number(0, 0);
    if (!id) return found(tl::unexpected(unknown_task(handle)));
    found(static_cast<TaskId>(*id));
  }));
}

namespace {

// What is the database's, by the names that people see.
void move_facts(json::object& status, json::object& database) {
  constexpr std::pair<const char*, const char*> facts[] = {{"timeline", "timeline"},
                                                           {"schemaVersion", "schemaVersion"},
                                                           {"synchronousStandbys", "synchronousStandbys"},
                                                           {"oldestTransaction", "oldestTransaction"},
                                                           {"tables", "tables"},
                                                           {"unnumbered", "unnumberedEvents"}};
  for (const auto& [from, to] : facts) {
    database[to] = status[from];
    status.erase(from);
  }
  std::int64_t dead = 0;
  std::int64_t live = 0;
  for (const json::value& table : array_in(database, "tables")) {
    dead += number_in(table.as_object(), "dead");
    live += number_in(table.as_object(), "live");
  }
  database["deadRows"] = dead;
  database["liveRows"] = live;
}

}  // namespace

void PostgresQueue::cluster_status(const std::function<void(const tl::expected<Object, rpc::Error>&)>& told) {
  ask("read_status_v1", {}, [this, told](const tl::expected<Object, rpc::Error>& answer) {
    if (!answer) return told(tl::unexpected(answer.error()));
    Object status = *answer;
    const Line::Standing standing = line_.standing();
    status["worker"] = cluster_.name;
    Object database{{"primary", standing.server},
                    {"wakeUps", standing.listens ? "listen" : "poll"},
                    {"pooler", standing.pooled},
                    {"encrypted", standing.encrypted},
                    {"insecure", cluster_.insecure}};
    if (standing.round_trip) database["roundTripMs"] = static_cast<double>(standing.round_trip->count()) / 1000;
    if (!problem_.empty()) database["trouble"] = problem_;
    move_facts(status, database);
    status["database"] = std::move(database);
    told(status);
  });
}

}  // namespace duet::task::postgres
