#include "task/intake.h"

#include <algorithm>
#include <utility>

#include "duet/base/all_calls.h"
#include "task/refusal.h"
#include "task/transition.h"

namespace duet::task {
namespace {

bool has_nul(std::string_view text) { return text.find('\0') != text.npos; }

// What the kernel could not pass on.
std::optional<rpc::Error> check_text(const Submission& submission) {
  if (has_nul(submission.cwd)) return rpc::invalid_params("cwd", "string without NUL", "string");
  for (const auto& [name, value] : submission.env) {
    const bool sound = !name.empty() && name.find('=') == name.npos && !has_nul(name) && !has_nul(value);
    if (!sound) return rpc::invalid_params("env", "object of names without `=` and values, none with a NUL", "object");
  }
  return std::nullopt;
}

void sort_and_deduplicate(std::vector<TaskId>& ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

Intake::Intake(const base::Clock& clock, Store& store, const Agents& agents, TaskId last_id, Taken taken)
    : clock_(clock), store_(store), agents_(agents), taken_(std::move(taken)), last_id_(last_id) {}

void Intake::submit(Submission submission, Capacity room, Submitted submitted, Companion companion) {
  const auto refuse = [&](const rpc::Error& error) { submitted(tl::unexpected(error)); };
  if (const Refusal refusal = check(submission)) return refuse(*refusal);
  std::string body = to_body(submission);
  const tl::expected<bool, rpc::Error> answered = answer_by_key(submission, body, submitted);
  if (!answered) return refuse(answered.error());
  if (*answered) return;

  tl::expected<std::string, rpc::Error> agent = agents_.choose(submission);
  if (!agent) return refuse(agent.error());
  if (room.queued + arriving_ >= room.capacity) return refuse(queue_full(room.capacity));
  Arrival arrival{.task = {.priority = submission.priority, .retries = submission.retries, .agent = std::move(*agent)}};
  if (const Refusal refusal = look_at_dependencies(submission.after, arrival)) return refuse(*refusal);
  if (!store_.has_room()) return refuse(unavailable("store", "more waits to be written than it can take"));
  arrival.id = ++last_id_;
  write(std::move(submission), std::move(body), std::move(arrival), std::move(submitted), std::move(companion));
}

Intake::Refusal Intake::check(Submission& submission) const {
  if (Refusal refusal = check_text(submission)) return refusal;
  sort_and_deduplicate(submission.after);
  if (submission.after.size() <= most_dependencies) return std::nullopt;
  return rpc::invalid_params("after", "array of at most " + std::to_string(most_dependencies) + " ids", "array");
}

void Intake::write(Submission submission, std::string body, Arrival arrival, Submitted submitted, Companion companion) {
  Task task{.id = arrival.id,
            .prompt = {},
            .agent = arrival.task.agent,
            .priority = submission.priority,
            .created_at = clock_.utc(),
            .metadata = shown_metadata(submission)};
  task.prompt = std::move(submission.prompt);
  ActiveTask active{.id = task.id, .retries = submission.retries, .after = std::move(submission.after)};
  if (!submission.key.empty()) arriving_keys_.try_emplace(submission.key, Arriving{body, {}});
  ++arriving_;
  for (const TaskId id : arrival.after) ++needed_[id];
  Change change{.kind = companion.kind, .bytes = 512 + 2 * body.size()};
  change.apply = [task = std::move(task), active = std::move(active), key = submission.key, body = std::move(body),
                  failed = arrival.failed, also = std::move(companion.write)](StoreWriter& writer) {
    writer.insert(task, active, key, body);
    tell_queued(writer, task.id, task.agent);
    if (also) also(writer, task.id);
    if (!failed) return;
    Progress end{.state = State::failed, .completed_at = task.created_at, .error = dependency_failure(*failed)};
    write_of({.id = task.id, .agent = task.agent, .to = std::move(end)})(writer);
  };
  change.done = [this, key = std::move(submission.key), arrival = std::move(arrival),
                 submitted = std::move(submitted)](bool kept) { arrived(arrival, submitted, key, kept); };
  store_.write(std::move(change));
}

void Intake::arrived(const Arrival& arrival, const Submitted& submitted, const std::string& key, bool kept) {
  --arriving_;
  for (const TaskId id : arrival.after) {
    if (--needed_[id] == 0) needed_.erase(id);
  }
  const auto known_key = key.empty() ? decltype(arriving_keys_)::node_type() : arriving_keys_.extract(key);
  tl::expected<Accepted, rpc::Error> answer;
  if (kept) {
    answer = Accepted{arrival.id, arrival.failed ? State::failed : State::queued};
  } else {
    answer = tl::unexpected(store_.refusal());
  }
  base::AllCalls calls;
  calls.make([&] { submitted(answer); });
  if (known_key) calls.make([&] { base::call_all(known_key.mapped().others, answer); });
  if (kept) calls.make([&] { taken_(arrival); });
  calls.check();
}

tl::expected<bool, rpc::Error> Intake::answer_by_key(const Submission& submission, const std::string& body,
                                                     const Submitted& submitted) {
  if (submission.key.empty()) return false;
  const auto another_body = [] {
    return tl::unexpected(rpc::invalid_params("key", "a key that was not used for another submission", "string"));
  };
  const auto arriving = arriving_keys_.find(submission.key);
  if (arriving != arriving_keys_.end()) {
    if (arriving->second.body != body) return another_body();
    arriving->second.others.push_back(submitted);
    return true;
  }
  const auto known = store_.read([&](StoreReader& tasks) { return tasks.find_key(submission.key); });
  if (!known) return tl::unexpected(known.error());
  if (!*known) return false;
  if ((*known)->body != body) return another_body();
  submitted(Accepted{(*known)->id, (*known)->state});
  return true;
}

// It is decided here, since one that has ended may be gone when the task is on disk.
Intake::Refusal Intake::look_at_dependencies(const std::vector<TaskId>& after, Arrival& arrival) const {
  for (const TaskId id : after) {
    const auto standing = store_.read([id](StoreReader& tasks) { return tasks.standing(id); });
    if (!standing) return standing.error();
    if (!*standing) return unknown_task(to_text(id));
    const State state = (*standing)->state;
    if (!has_ended(state)) {
      arrival.after.push_back(id);
    } else if (state != State::completed && !arrival.failed) {
      arrival.failed = id;
    }
  }
  return std::nullopt;
}

}  // namespace duet::task
