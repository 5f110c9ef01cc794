#include "task/intake.h"

#include <algorithm>

#include "task/refusal.h"

namespace duet::task {
namespace {

bool has_nul(std::string_view text) { return text.find('\0') != text.npos; }

// What the kernel could not pass on.
void check_text(const Submission& submission) {
  if (has_nul(submission.cwd)) throw rpc::invalid_params("cwd", "string without NUL", "string");
  for (const auto& [name, value] : submission.env) {
    const bool sound = !name.empty() && name.find('=') == name.npos && !has_nul(name) && !has_nul(value);
    if (!sound) throw rpc::invalid_params("env", "object of names without `=` and values, none with a NUL", "object");
  }
}

void sort_and_deduplicate(std::vector<TaskId>& ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

Intake::Intake(const base::Clock& clock, Store& store, Ledger& ledger, const Agents& agents, Taken taken)
    : clock_(clock),
      store_(store),
      ledger_(ledger),
      agents_(agents),
      taken_(std::move(taken)),
      last_id_(store.read([](TaskReader& tasks) { return tasks.newest(); })) {}

void Intake::submit(Submission submission, std::size_t capacity, Submitted submitted) {
  check_text(submission);
  sort_and_deduplicate(submission.after);
  if (submission.after.size() > most_dependencies) {
    throw rpc::invalid_params("after", "array of at most " + std::to_string(most_dependencies) + " ids", "array");
  }
  std::string body = to_body(submission);
  if (!submission.key.empty() && answer_by_key(submission, body, submitted)) return;

  Task task{.agent = agents_.choose(submission), .priority = submission.priority};
  if (static_cast<std::size_t>(ledger_.counts()[0]) + arriving_ >= capacity) throw queue_full(capacity);
  check_dependencies(submission.after);
  if (!store_.has_room()) throw unavailable("store", "more waits to be written than it can take");

  task.id = ++last_id_;
  task.prompt = submission.prompt;
  task.created_at = clock_.utc();
  task.metadata = shown_metadata(submission);
  QueuedTask queued{.priority = task.priority, .retries = submission.retries, .agent = task.agent};
  if (!submission.key.empty()) arriving_keys_.try_emplace(submission.key, Arriving{body, {}});
  ++arriving_;
  ledger_.insert(std::move(task), submission, std::move(body),
                 [this, id = last_id_, key = submission.key, after = submission.after, queued = std::move(queued),
                  submitted = std::move(submitted)](bool kept) {
                   --arriving_;
                   if (!kept)
                     return arrived(key, submitted, tl::unexpected(unavailable("store", store_.health().problem)));
                   arrived(key, submitted, Accepted{id, State::queued});
                   taken_(id, queued, after);
                 });
}

void Intake::arrived(const std::string& key, const Submitted& submitted,
                     const tl::expected<Accepted, rpc::Error>& answer) {
  submitted(answer);
  const auto found = arriving_keys_.find(key);
  if (found == arriving_keys_.end()) return;
  const std::vector<Submitted> others = std::move(found->second.others);
  arriving_keys_.erase(found);
  for (const Submitted& other : others) other(answer);
}

bool Intake::answer_by_key(const Submission& submission, const std::string& body, const Submitted& submitted) {
  const auto another_body = [] {
    return rpc::invalid_params("key", "a key that was not used for another submission", "string");
  };
  const auto arriving = arriving_keys_.find(submission.key);
  if (arriving != arriving_keys_.end()) {
    if (arriving->second.body != body) throw another_body();
    arriving->second.others.push_back(submitted);
    return true;
  }
  const auto known = store_.read([&](TaskReader& tasks) { return tasks.find_key(submission.key); });
  if (!known) return false;
  if (known->body != body) throw another_body();
  submitted(Accepted{known->id, known->state});
  return true;
}

void Intake::check_dependencies(const std::vector<TaskId>& after) const {
  for (const TaskId id : after) {
    if (!store_.read([id](TaskReader& tasks) { return tasks.standing(id); })) throw unknown_task(to_text(id));
  }
}

}  // namespace duet::task
