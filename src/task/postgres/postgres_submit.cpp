#include <algorithm>
#include <utility>

#include <boost/json/object.hpp>

#include "duet/rpc/value.h"
#include "task/postgres/postgres_queue.h"
#include "task/postgres/records.h"
#include "task/postgres/shared_place.h"
#include "task/refusal.h"
#include "task/submission_check.h"

// How tasks come into the queue.

namespace duet::task::postgres {
namespace {

constexpr const char* limit_label = "limit=";

std::vector<std::string> limits_wanted(const process::Limits& limits) {
  std::vector<std::string> wanted;
  if (limits.memory) wanted.emplace_back("memory");
  if (limits.processes) wanted.emplace_back("processes");
  if (limits.cpu) wanted.emplace_back("cpu");
  return wanted;
}

// Whoever asks may ask elsewhere.
rpc::Error not_taken(std::string_view subsystem, const rpc::Error& why) {
  return {why.code(), why.message(), boost::json::object{{"subsystem", subsystem}, {"outcome", "none"}}};
}

}  // namespace

// One that only other workers have is as good as one of ours; what its settings say is theirs.
tl::expected<std::string, rpc::Error> PostgresQueue::choose_agent(const Submission& submission) const {
  const bool is_elsewhere = submission.agent && !has_agent(*submission.agent);
  tl::expected<std::string, rpc::Error> chosen =
      is_elsewhere ? tl::expected<std::string, rpc::Error>(*submission.agent) : agents_.choose(submission);
  // Who runs no tasks has agents of its own only to say what to ask for.
  const bool must_be_known = is_elsewhere || (!cluster_.run && membership_.has_beaten());
  if (chosen && must_be_known && !membership_.is_agent_known(*chosen)) {
    return tl::unexpected(no_agent("no worker of the queue accepts the agent '" + *chosen + "'", "cluster.accept"));
  }
  return chosen;
}

bool PostgresQueue::has_agent(const std::string& name) const {
  return agents_.find(name) != nullptr || agents_.is_untrusted(name);
}

std::optional<rpc::Error> PostgresQueue::check_group(const std::string& group) const {
  if (group == default_group || settings_.groups.contains(group)) return std::nullopt;
  if (settings_.untrusted_groups.contains(group)) return untrusted_group(group, settings_.distrust);
  std::vector<std::string> known{default_group};
  for (const auto& [name, settings] : settings_.groups) known.push_back(name);
  return unknown_group(group, known);
}

std::vector<std::string> PostgresQueue::limit_labels() const {
  std::vector<std::string> labels;
  for (const std::string& name : options_.limits) labels.push_back(limit_label + name);
  return labels;
}

// Limits are needed as labels are, by a worker that can keep them: each worker has those of its own.
std::optional<rpc::Error> PostgresQueue::add_limits(const Submission& submission, Submits::Entry& entry) const {
  for (const std::string& name : limits_wanted(submission.limits)) {
    if (!is_limit_known(name)) {
      return limits_not_kept("no worker of the queue can keep a limit of " + name +
                             ": it takes a daemon with a cgroup of its own, see 'duet-rpc doctor' there");
    }
    entry.needs.push_back(limit_label + name);
  }
  return std::nullopt;
}

bool PostgresQueue::is_limit_known(const std::string& name) const {
  const bool is_ours = cluster_.run && std::ranges::find(options_.limits, name) != options_.limits.end();
  return is_ours || membership_.is_limit_known(limit_label + name);
}

// A worker that has its agent and can keep its limits, as far as the last beat told.
bool PostgresQueue::is_somebody_known_for(const Submission& submission) const {
  const bool is_of_others = !cluster_.run || (submission.agent && !has_agent(*submission.agent));
  const bool is_agent_known = !is_of_others || choose_agent(submission);
  return is_agent_known && std::ranges::all_of(limits_wanted(submission.limits),
                                               [this](const std::string& name) { return is_limit_known(name); });
}

// What of it the database is told; or why nobody could do it.
tl::expected<Submits::Entry, rpc::Error> PostgresQueue::entry_of(Submission& submission) const {
  if (auto refusal = check_submission(submission)) return tl::unexpected(*refusal);
  if (submission.key.find('\0') != submission.key.npos) {
    return tl::unexpected(rpc::invalid_params("key", "string without NUL", "string"));
  }
  if (submission.here && !cluster_.run) {
    return tl::unexpected(no_agent("this daemon runs no tasks: [cluster] run is false", "cluster.run"));
  }
  const std::string own_name = "name=" + cluster_.name;
  if (auto portable = make_portable(submission, options_.project()); !portable) {
    return tl::unexpected(portable.error());
  }
  const process::Environment env = std::exchange(submission.env, {});
  Submits::Entry entry{.key = submission.key, .body = to_body(submission)};
  submission.env = env;
  entry.env = env_text(submission);
  tl::expected<std::string, rpc::Error> agent = choose_agent(submission);
  if (!agent) return tl::unexpected(agent.error());
  const Agent* const own = agents_.find(*agent);
  if (own != nullptr) {
    Agents::add_defaults(submission, *own);
    const auto provided = agents_.provide_for(process::both(own->limits, submission.limits));
    if (submission.here && !provided) return tl::unexpected(limits_not_kept(provided.error()));
  }
  if (submission.group.empty()) submission.group = default_group;
  if (auto refusal = check_group(submission.group)) return tl::unexpected(*refusal);
  const std::vector<std::string> accepts = accepted_agents(cluster_, settings_);
  entry.own = cluster_.run && own != nullptr && std::ranges::find(accepts, *agent) == accepts.end();
  entry.agent = std::move(*agent);
  entry.group = submission.group;
  entry.needs = submission.needs;
  const bool is_named = std::ranges::find(entry.needs, own_name) != entry.needs.end();
  if (submission.here && !is_named) entry.needs.push_back(own_name);
  if (auto refusal = add_limits(submission, entry)) return tl::unexpected(*refusal);
  std::ranges::sort(entry.needs);
  entry.priority = submission.priority.value_or(0);
  entry.retries = submission.retries.value_or(0);
  entry.on_lost = submission.on_lost.value_or(cluster_.on_lost);
  if (submission.delay) entry.delay = submission.delay->count();
  if (submission.not_before) entry.not_before = base::milliseconds_of(*submission.not_before);
  entry.prompt = prompt_text(submission.prompt);
  entry.metadata = shown_metadata_text(submission);
  if (!submission.labels.empty()) entry.labels = rpc::to_text(to_json(submission.labels));
  entry.after = submission.after;
  return entry;
}

// One that could do it may have come since the last beat: nobody is refused for an old view.
void PostgresQueue::submit(Submission submission, Submitted submitted, Companion companion) {
  const base::TimePoint came = loop_.now();
  if (is_somebody_known_for(submission)) return submit_now(std::move(submission), came, submitted, companion);
  membership_.after_beat(
      lifetime_.bind([this, submission = std::move(submission), came, submitted = std::move(submitted), companion] {
        submit_now(submission, came, submitted, companion);
      }));
}

void PostgresQueue::submit_now(Submission submission, base::TimePoint came, const Submitted& submitted,
                               const Companion& companion) {
  if (stopping_) return submitted(tl::unexpected(not_taken("supervisor", is_stopping())));
  if (is_refused()) return submitted(tl::unexpected(not_taken("store", unavailable("store", trouble()))));
  tl::expected<Submits::Entry, rpc::Error> entry = entry_of(submission);
  if (!entry) return submitted(tl::unexpected(entry.error()));
  const auto answer = [this, submission = std::move(submission), asked = entry->body, submitted,
                       companion](const tl::expected<Submits::Taken, rpc::Error>& task) {
    if (!task) return submitted(tl::unexpected(task.error()));
    taken(submission, asked, *task, submitted, companion);
  };
  events_.after_placing(lifetime_.bind(
      [this, entry = std::move(*entry), answer, came] { submits_.add(Submits::Entry(entry), answer, came); }));
}

// A key that was there belongs to the same submission, or it is refused. What is to be written with a new task is
// written behind it: should that be lost, the key finds the task.
void PostgresQueue::taken(const Submission& submission, const std::string& asked, const Submits::Taken& task,
                          const Submitted& submitted, const Companion& companion) {
  const bool is_ours =
      task.fresh || (task.again && submission.key.empty());  // without a key nobody else can have asked
  const Accepted accepted{task.id, task.state, is_ours};
  if (!is_ours) {
    const bool may_differ = submission.key.empty() || submission.key_decides;
    std::vector<std::string> differing =
        may_differ ? std::vector<std::string>() : differences(task.body, asked, usual_priority(agents_, submission));
    if (!may_differ && task.other_env) differing.emplace_back("env");
    if (!differing.empty()) return submitted(tl::unexpected(key_is_taken(task.id, differing)));
    return submitted(accepted);
  }
  log_.info("task accepted", {{"task", to_text(task.id)}, {"agent", submission.agent.value_or("")}});
  if (!companion.write) return submitted(accepted);
  store_.write({.apply = [write = companion.write, id = task.id](StoreWriter& writer) { write(writer, id); },
                .done = [submitted, accepted](bool /*kept*/) { submitted(accepted); },
                .kind = Change::Kind::fact});
}

}  // namespace duet::task::postgres
