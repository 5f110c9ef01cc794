#include "app/methods/automation_methods.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/describe/class.hpp>
#include <boost/json/object.hpp>

#include "app/doors/roles.h"
#include "app/methods/from_task.h"
#include "app/methods/task_params.h"
#include "app/words/moment.h"
#include "duet/rpc/json_text.h"

namespace duet::app {
namespace {

using automation::Engine;
using peer::Reply;
using peer::Request;

struct Approved {
  bool approved;
};
BOOST_DESCRIBE_STRUCT(Approved, (), (approved))

struct Switched {
  bool enabled;
};
BOOST_DESCRIBE_STRUCT(Switched, (), (enabled))

// The shape of Engine::status().

struct RuleStatus {
  std::string id;
  bool enabled;
  std::string action;
  bool requiresApproval;
  std::optional<std::string> source;
  std::optional<std::string> type;
  std::optional<std::string> pattern;
  std::optional<std::string> cron;
  std::optional<std::string> timezone;
  std::optional<std::string> agent;
  std::optional<std::string> nextAt;
  std::optional<std::string> lastFiredAt;
  std::optional<std::string> waiting;
};
BOOST_DESCRIBE_STRUCT(RuleStatus, (),
                      (id, enabled, action, requiresApproval, source, type, pattern, cron, timezone, agent, nextAt,
                       lastFiredAt, waiting))

struct Would {
  std::string action;
  std::optional<std::string> agent;
  std::optional<std::string> prompt;
  std::optional<std::string> message;
  std::optional<std::vector<std::string>> command;
};
BOOST_DESCRIBE_STRUCT(Would, (), (action, agent, prompt, message, command))

struct ChainLink {
  std::string ruleId;
  std::optional<std::string> taskId;
  std::optional<std::string> id;
};
BOOST_DESCRIBE_STRUCT(ChainLink, (), (ruleId, taskId, id))

struct FiringStatus {
  std::string id;
  std::string ruleId;
  std::string at;
  std::string outcome;
  std::size_t count;
  std::optional<std::string> reason;
  std::optional<std::string> taskId;
  std::optional<std::string> cause;
  std::optional<Would> would;
  std::optional<std::vector<ChainLink>> links;
};
BOOST_DESCRIBE_STRUCT(FiringStatus, (), (id, ruleId, at, outcome, count, reason, taskId, cause, would, links))

struct AutomationStatus {
  bool enabled;
  std::size_t ruleCount;
  std::vector<RuleStatus> rules;
  std::vector<FiringStatus> recent;
  std::optional<std::vector<std::string>> problems;
};
BOOST_DESCRIBE_STRUCT(AutomationStatus, (), (enabled, ruleCount, rules, recent, problems))

struct History {
  std::string ruleId;
  std::vector<FiringStatus> firings;
};
BOOST_DESCRIBE_STRUCT(History, (), (ruleId, firings))

// The shape of Engine::test().

struct TestedEvent {
  std::string source;
  std::string type;
  boost::json::object payload;
};
BOOST_DESCRIBE_STRUCT(TestedEvent, (), (source, type, payload))

struct TestedCondition {
  std::string asks;
  bool holds;
};
BOOST_DESCRIBE_STRUCT(TestedCondition, (), (asks, holds))

struct Tested {
  std::string ruleId;
  bool fires;
  bool matches;
  TestedEvent event;
  std::vector<TestedCondition> conditions;
  bool requiresApproval;
  std::optional<std::string> hindrance;
  std::optional<Would> would;
  std::optional<std::string> nextAt;
};
BOOST_DESCRIBE_STRUCT(Tested, (),
                      (ruleId, fires, matches, event, conditions, requiresApproval, hindrance, would, nextAt))

struct Denied {
  bool denied;
};
BOOST_DESCRIBE_STRUCT(Denied, (), (denied))

struct FiredByHand {
  std::string id;
  std::string outcome;
  std::optional<std::string> reason;
  std::optional<std::string> taskId;
};
BOOST_DESCRIBE_STRUCT(FiredByHand, (), (id, outcome, reason, taskId))

base::UtcTime asked_time(const std::string& text) {
  if (const auto moment = parse_moment(text)) return *moment;
  constexpr std::size_t shown_characters = 64;
  throw rpc::invalid_params("time", "a time such as 2026-06-01T12:00:00Z, without the Z in local time, up to 2199",
                            rpc::first_characters(text, shown_characters));
}

using OptionalText = std::optional<std::string>;

// As the event of a file has it, so that patterns are compared with what they will be compared with.
bool is_path_from_root(std::string_view path) {
  const std::filesystem::path parsed(path);
  return !path.empty() && parsed.is_relative() && parsed.lexically_normal().native() == parsed.native() &&
         *parsed.begin() != ".." && *parsed.begin() != ".";
}

Engine::Question question_of(const OptionalText& path, const OptionalText& task, const OptionalText& time) {
  if (int{path.has_value()} + int{task.has_value()} + int{time.has_value()} > 1) {
    throw rpc::invalid_params("path", "the only one of path, taskId and time", "several of them");
  }
  constexpr std::size_t shown_characters = 64;
  if (path && !is_path_from_root(*path)) {
    throw rpc::invalid_params("path", "a path from the project's root, such as src/a.c",
                              rpc::first_characters(*path, shown_characters));
  }
  Engine::Question question{.path = path};
  if (task) question.task = task_id_of(*task);
  if (time) question.time = asked_time(*time);
  return question;
}

template <typename Result>
Engine::Done answering(Reply<Result> reply, Result result) {
  return [reply = shared(std::move(reply)), result](const std::optional<rpc::Error>& error) {
    error ? reply->fail(*error) : reply->ok(result);
  };
}

void add_switch(peer::Methods& methods, Engine& engine, bool enabled) {
  const std::string what = enabled ? "Lets rules fire again" : "Keeps rules from firing";
  methods
      .add(enabled ? "automation.enable" : "automation.disable", what + ", also after a restart", {"ruleId"},
           [&engine, enabled](const std::optional<std::string>& rule, const Request& request, Reply<Switched> reply) {
             refuse_from_task(request);
             engine.enable(rule, enabled, answering(std::move(reply), Switched{enabled}));
           })
      .needs(role::operate)
      .describe("ruleId", "One rule; without it all of automation");
}

void add_questions(peer::Methods& methods, Engine& engine) {
  methods
      .add("automation.test", "Tells whether a rule would fire, what says no, and what it would do; nothing is done",
           {"ruleId", "path", "taskId", "time"},
           [&engine](const std::string& rule, const OptionalText& path, const OptionalText& task,
                     const OptionalText& time) {
             return rpc::JsonOf<Tested>(engine.test(rule, question_of(path, task, time)));
           })
      .read_only()
      .describe("path", "For a rule that watches files: the one that would have changed")
      .describe("taskId", "For a rule that hears of tasks: the one that would have ended as it is")
      .describe("time", "For a schedule: 2026-06-01T12:00:00Z, or without the Z in local time");
  methods
      .add("automation.fire", "Has a rule fire now, whatever its trigger, conditions, cooldown and rate say",
           {"ruleId", "path"},
           [&engine](const std::string& rule, const OptionalText& path, const Request& request,
                     Reply<FiredByHand> reply) {
             refuse_from_task(request);
             engine.fire_now(
                 rule, question_of(path, {}, {}),
                 [reply = shared(std::move(reply))](const tl::expected<boost::json::object, rpc::Error>& result) {
                   result ? reply->ok(rpc::JsonOf<FiredByHand>(*result)) : reply->fail(result.error());
                 });
           })
      .describe("path", "What payload.path is, for a rule that watches files");
  methods
      .add("automation.history", "Lists the last firings of a rule, with cause and task", {"ruleId"},
           [&engine](const std::string& rule) { return rpc::JsonOf<History>(engine.history(rule)); })
      .read_only();
}

}  // namespace

void add_automation_methods(peer::Methods& methods, Engine& engine) {
  methods
      .add("automation.status", "Tells the rules and what they did last, including what was held back and why",
           [&engine] { return rpc::JsonOf<AutomationStatus>(engine.status()); })
      .needs(role::observe);
  methods
      .add("automation.approve", "Lets a firing go that waits for approval", {"id"},
           [&engine](const std::string& id, const Request& request, Reply<Approved> reply) {
             refuse_from_task(request);
             engine.approve(id, answering(std::move(reply), Approved{true}));
           })
      .needs(role::operate)
      .describe("id", "Of the firing, as in automation.status");
  methods
      .add("automation.deny", "Takes a firing back that waits for approval", {"id"},
           [&engine](const std::string& id, const Request& request, Reply<Denied> reply) {
             refuse_from_task(request);
             engine.deny(id, answering(std::move(reply), Denied{true}));
           })
      .needs(role::operate)
      .describe("id", "Of the firing, as in automation.status");
  add_questions(methods, engine);
  add_switch(methods, engine, true);
  add_switch(methods, engine, false);
}

}  // namespace duet::app
