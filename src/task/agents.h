#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "duet/rpc/error.h"
#include "process/launch.h"
#include "task/agent.h"
#include "task/run.h"
#include "task/task.h"

namespace duet::task {

/// The programs that do tasks: those of the settings, `claude` and `shell`. Knows which one a submission means, whether
/// that one can take its prompt, and what is to be started for it. `shell` is never chosen by itself.
class Agents {
 public:
  /// Sees to it that such limits can be kept; or says why not, and what would help.
  using ProvideFor = std::function<tl::expected<void, std::string>(const process::Limits&)>;

  /// `environment` is what tasks inherit, `project` tells where they run unless they say otherwise: it may be moved.
  /// Without `provide_for` no limit can be kept.
  Agents(const TaskSettings& settings, process::Environment environment, std::function<std::string()> project,
         ProvideFor provide_for = {});

  void change_settings(const TaskSettings& settings);

  /// Sees to it that these can be kept; or says why not.
  tl::expected<void, std::string> provide_for(const process::Limits& limits) const;

  /// The name of the agent that is to do it; or that there is none, or that it could not do it.
  tl::expected<std::string, rpc::Error> choose(const Submission& submission) const;

  /// What is said of a name that no agent has; `param` is where it was given.
  rpc::Error unknown(const std::string& name, std::string_view param = "agent") const;

  /// A file that the user has not trusted says what it is. No other agent of that name takes its place: it would be
  /// another program than the one that is meant.
  bool is_untrusted(std::string_view name) const { return untrusted_.contains(name); }
  const Distrust& distrust() const { return distrust_; }
  /// Nullptr if there is none.
  const Agent* find(std::string_view name) const;
  const std::map<std::string, Agent, std::less<>>& all() const { return agents_; }
  /// Who does a task that names no agent; none: it is refused.
  std::optional<std::string> usual() const;
  /// Its program is there, as far as a task is concerned that brings no PATH of its own.
  bool is_available(const Agent& agent) const { return is_on_path(agent, {}); }
  /// What a task of this agent is accepted with where its submission says nothing. A time limit and `limits` are not
  /// among it: the agent's count as they are when an attempt begins.
  void add_defaults(Submission& submission, std::string_view agent) const;
  static void add_defaults(Submission& submission, const Agent& agent);

  /// Why its program cannot be given this prompt; `choose` has asked that already for a task of this daemon.
  std::optional<std::string> objection_to(const std::string& agent, std::string_view prompt) const;
  /// None if there is no such agent any more.
  std::optional<Assignment> assignment(RunId run, const std::string& agent, Submission submission) const;

 private:
  tl::expected<std::string, rpc::Error> wanted_agent(const Submission& submission) const;
  bool is_on_path(const Agent& agent, const process::Environment& added) const;

  std::map<std::string, Agent, std::less<>> agents_;
  std::set<std::string, std::less<>> untrusted_;  // names; tasks of theirs are refused with the cure
  std::string default_;
  std::string untrusted_default_;
  Distrust distrust_;
  process::Environment environment_;
  std::function<std::string()> project_;
  ProvideFor provide_for_;
};

}  // namespace duet::task
