#include "task/agents.h"

#include <algorithm>

#include <boost/json/array.hpp>

#include "duet/rpc/error.h"
#include "duet/rpc/json_text.h"
#include "task/refusal.h"

namespace duet::task {
namespace {

constexpr std::string_view placeholder = "{prompt}";
constexpr std::size_t argument_limit = 128 * 1024;  // of the kernel for one argument, with the NUL at its end
constexpr std::string_view built_in_default = "claude";

// A prompt is never an option of theirs: it comes on stdin, or behind `--`.
std::map<std::string, Agent, std::less<>> with_built_in(const TaskSettings& settings) {
  std::map<std::string, Agent, std::less<>> agents = settings.agents;
  // The settings may say something about one of them, and leave its command as it is.
  const auto add = [&agents](std::string_view name, std::vector<std::string> command, bool prompt_on_stdin) {
    Agent& agent = agents[std::string(name)];
    if (!agent.command.empty()) return;
    agent.command = std::move(command);
    agent.prompt_on_stdin = prompt_on_stdin;
  };
  add(built_in_default, {"claude", "-p"}, true);
  add("shell", {"/bin/sh", "-c", "--", "{prompt}"}, false);
  if (settings.had_trust) {
    std::erase_if(agents, [&](const auto& agent) { return settings.untrusted_agents.contains(agent.first); });
  }
  return agents;
}

std::string default_that_counts_no_more(const TaskSettings& settings) {
  return settings.had_trust ? settings.untrusted_default : "";
}

std::string filled_in(std::string_view argument, std::string_view prompt) {
  std::string out;
  for (std::size_t at = argument.find(placeholder); at != argument.npos; at = argument.find(placeholder)) {
    out.append(argument.substr(0, at)).append(prompt);
    argument.remove_prefix(at + placeholder.size());
  }
  return out.append(argument);
}

// A program with a slash in its name is one of the project, wherever a task of it works.
std::string place_of_program(const std::string& program, const std::string& project) {
  const bool is_relative = program.find('/') != program.npos && !program.starts_with('/');
  return is_relative ? project + '/' + program : program;
}

std::size_t size_without_prompt(std::string_view argument, std::size_t& prompts) {
  std::size_t size = argument.size();
  for (std::size_t at = argument.find(placeholder); at != argument.npos;
       at = argument.find(placeholder, at + placeholder.size())) {
    size -= placeholder.size();
    ++prompts;
  }
  return size;
}

// What a prompt would have to be that the kernel can pass on.
std::optional<std::string> wanted_instead(const Agent& agent, std::string_view prompt) {
  if (agent.prompt_on_stdin) return std::nullopt;
  if (prompt.find('\0') != prompt.npos) return "string without NUL for this agent";
  for (const std::string& argument : agent.command) {
    std::size_t prompts = 0;
    const std::size_t rest = size_without_prompt(argument, prompts) + 1;
    if (prompts == 0 || rest + prompts * prompt.size() <= argument_limit) continue;
    const std::size_t most = rest < argument_limit ? (argument_limit - rest) / prompts : 0;
    return "string of at most " + std::to_string(most) + " bytes for this agent";
  }
  return std::nullopt;
}

}  // namespace

Agents::Agents(const TaskSettings& settings, process::Environment environment, std::function<std::string()> project,
               ProvideFor provide_for)
    : agents_(with_built_in(settings)),
      untrusted_(settings.untrusted_agents),
      default_(settings.default_agent),
      untrusted_default_(default_that_counts_no_more(settings)),
      distrust_(settings.distrust),
      environment_(std::move(environment)),
      project_(std::move(project)),
      provide_for_(std::move(provide_for)) {}

void Agents::change_settings(const TaskSettings& settings) {
  agents_ = with_built_in(settings);
  untrusted_ = settings.untrusted_agents;
  default_ = settings.default_agent;
  untrusted_default_ = default_that_counts_no_more(settings);
  distrust_ = settings.distrust;
}

tl::expected<std::string, rpc::Error> Agents::choose(const Submission& submission) const {
  tl::expected<std::string, rpc::Error> name = wanted_agent(submission);
  if (!name) return name;
  const auto found = agents_.find(*name);
  if (found == agents_.end()) return tl::unexpected(unknown(*name));
  if (const auto wanted = wanted_instead(found->second, submission.prompt)) {
    return tl::unexpected(rpc::invalid_params("prompt", *wanted, "string"));
  }
  return name;
}

const Agent* Agents::find(std::string_view name) const {
  const auto found = agents_.find(name);
  return found == agents_.end() ? nullptr : &found->second;
}

void Agents::add_defaults(Submission& submission, std::string_view agent) const {
  static const Agent without_words;
  const Agent* const found = find(agent);
  add_defaults(submission, found != nullptr ? *found : without_words);
}

void Agents::add_defaults(Submission& submission, const Agent& defaults) {
  if (!submission.priority) submission.priority = defaults.priority.value_or(0);
  if (!submission.retries) submission.retries = defaults.retries.value_or(0);
  if (submission.group.empty()) submission.group = defaults.group.empty() ? default_group : defaults.group;
}

rpc::Error Agents::unknown(const std::string& name, std::string_view param) const {
  if (untrusted_.contains(name)) return untrusted_agent(name, distrust_);
  boost::json::array names;
  for (const auto& [known_name, agent] : agents_) names.emplace_back(known_name);
  constexpr std::size_t shown_characters = 64;
  return rpc::invalid_params(param, "the name of an agent", rpc::first_characters(name, shown_characters), names);
}

tl::expected<std::string, rpc::Error> Agents::wanted_agent(const Submission& submission) const {
  if (submission.agent) return *submission.agent;
  const std::string_view counting = default_.empty() ? built_in_default : std::string_view(default_);
  if (!untrusted_default_.empty() && untrusted_default_ != counting) {
    return tl::unexpected(untrusted_default_agent(untrusted_default_, distrust_));
  }
  if (untrusted_.contains(counting) && !agents_.contains(counting)) {
    return tl::unexpected(untrusted_agent(counting, distrust_));
  }
  if (!default_.empty()) {
    if (agents_.contains(default_)) return default_;
    return tl::unexpected(
        no_agent("default_agent names an agent that the settings do not have", "agents." + default_ + ".command"));
  }
  const Agent& agent = agents_.find(built_in_default)->second;
  if (is_on_path(agent, submission.env)) return std::string(built_in_default);
  const std::string others = "; the project's settings have agents, but " + distrust_.why + ": " + distrust_.cure;
  const std::string cure = untrusted_.empty() ? "" : others;
  return tl::unexpected(no_agent("no agent is configured, and `claude` is not on the PATH" + cure, "default_agent"));
}

std::optional<std::string> Agents::usual() const {
  const auto wanted = wanted_agent({});
  return wanted ? std::optional(*wanted) : std::nullopt;
}

bool Agents::is_on_path(const Agent& agent, const process::Environment& added) const {
  const auto path_in = [](const process::Environment& environment) {
    const auto path = environment.find("PATH");
    return path == environment.end() ? std::string() : path->second;
  };
  const std::string own = agent.env.contains("PATH") ? path_in(agent.env) : path_in(environment_);
  const std::string path = added.contains("PATH") ? path_in(added) : own;
  return !process::find_program(place_of_program(agent.command.front(), project_()), path).empty();
}

tl::expected<void, std::string> Agents::provide_for(const process::Limits& limits) const {
  if (!limits.any()) return {};
  if (provide_for_) return provide_for_(limits);
  return tl::unexpected(std::string("there is nothing to keep them with"));
}

std::optional<std::string> Agents::objection_to(const std::string& agent, std::string_view prompt) const {
  const Agent* const chosen = find(agent);
  const auto wanted = chosen == nullptr ? std::nullopt : wanted_instead(*chosen, prompt);
  return wanted ? std::optional("its prompt must be a " + *wanted) : std::nullopt;
}

std::optional<Assignment> Agents::assignment(RunId run, const std::string& agent, Submission submission) const {
  const auto found = agents_.find(agent);
  if (found == agents_.end()) return std::nullopt;
  const Agent& chosen = found->second;
  Assignment assignment{.run = run, .arguments = chosen.command, .environment = environment_};
  assignment.arguments.front() = place_of_program(chosen.command.front(), project_());
  for (const auto& [name, value] : chosen.env) assignment.environment[name] = value;
  for (auto& [name, value] : submission.env) assignment.environment[name] = std::move(value);
  const bool relative = !submission.cwd.starts_with('/');
  assignment.directory = relative ? project_() + (submission.cwd.empty() ? "" : "/" + submission.cwd) : submission.cwd;
  assignment.time_limit = submission.time_limit ? submission.time_limit : chosen.time_limit;
  assignment.limits = process::both(chosen.limits, submission.limits);
  if (chosen.prompt_on_stdin) {
    assignment.input = std::move(submission.prompt);
  } else {
    for (std::string& argument : assignment.arguments) argument = filled_in(argument, submission.prompt);
  }
  return assignment;
}

}  // namespace duet::task
