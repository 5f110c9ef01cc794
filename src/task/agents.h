#pragma once

#include <functional>
#include <map>
#include <optional>
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
  /// `environment` is what tasks inherit, `project` tells where they run unless they say otherwise: it may be moved.
  Agents(const TaskSettings& settings, process::Environment environment, std::function<std::string()> project);

  void change_settings(const TaskSettings& settings);

  /// The name of the agent that is to do it; or that there is none, or that it could not do it.
  tl::expected<std::string, rpc::Error> choose(const Submission& submission) const;

  /// None if there is no such agent any more.
  std::optional<Assignment> assignment(RunId run, const std::string& agent, Submission submission) const;

 private:
  rpc::Error unknown(const std::string& name) const;
  tl::expected<std::string, rpc::Error> wanted_agent(const Submission& submission) const;
  bool is_on_path(const Agent& agent, const process::Environment& added) const;

  std::map<std::string, Agent, std::less<>> agents_;
  std::string default_;
  process::Environment environment_;
  std::function<std::string()> project_;
};

}  // namespace duet::task
