#include "app/methods/automation_methods.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/describe/class.hpp>

namespace duet::app {
namespace {

using automation::Engine;
using peer::Reply;

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
  std::optional<std::string> agent;
  std::optional<std::string> nextAt;
  std::optional<std::string> lastFiredAt;
};
BOOST_DESCRIBE_STRUCT(RuleStatus, (),
                      (id, enabled, action, requiresApproval, source, type, pattern, cron, agent, nextAt, lastFiredAt))

struct FiringStatus {
  std::string id;
  std::string ruleId;
  std::string at;
  std::string outcome;
  std::size_t count;
  std::optional<std::string> reason;
  std::optional<std::string> taskId;
};
BOOST_DESCRIBE_STRUCT(FiringStatus, (), (id, ruleId, at, outcome, count, reason, taskId))

struct AutomationStatus {
  bool enabled;
  std::size_t ruleCount;
  std::vector<RuleStatus> rules;
  std::vector<FiringStatus> recent;
  std::optional<std::vector<std::string>> problems;
};
BOOST_DESCRIBE_STRUCT(AutomationStatus, (), (enabled, ruleCount, rules, recent, problems))

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
           [&engine, enabled](const std::optional<std::string>& rule, Reply<Switched> reply) {
             engine.enable(rule, enabled, answering(std::move(reply), Switched{enabled}));
           })
      .describe("ruleId", "One rule; without it all of automation");
}

}  // namespace

void add_automation_methods(peer::Methods& methods, Engine& engine) {
  methods.add("automation.status", "Tells the rules and what they did last, including what was held back and why",
              [&engine] { return rpc::JsonOf<AutomationStatus>(engine.status()); });
  methods
      .add("automation.approve", "Lets a firing go that waits for approval", {"id"},
           [&engine](const std::string& id, Reply<Approved> reply) {
             engine.approve(id, answering(std::move(reply), Approved{true}));
           })
      .describe("id", "Of the firing, as in automation.status");
  add_switch(methods, engine, true);
  add_switch(methods, engine, false);
}

}  // namespace duet::app
