#include "task/intake.h"

#include <algorithm>
#include <set>
#include <utility>

#include <boost/json/object.hpp>

#include "duet/base/all_calls.h"
#include "duet/rpc/value.h"
#include "task/refusal.h"
#include "task/transition.h"

namespace duet::task {
namespace {

constexpr std::size_t most_waiting_bytes = std::size_t{32} << 20U;  // of submissions that are not looked at yet

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

// What a client gave, each limit by itself.
boost::json::object params_of(std::string_view body) {
  boost::json::object params = rpc::parse_value(body).as_object();
  const boost::json::value* const limits = params.if_contains("limits");
  if (limits == nullptr) return params;
  const boost::json::object each = limits->as_object();
  params.erase("limits");
  for (const auto& [name, value] : each) params.insert_or_assign(name, value);
  return params;
}

// What a task has whose submission names no priority.
std::int64_t usual_priority(const Agents& agents, const Submission& submission) {
  const tl::expected<std::string, rpc::Error> name = agents.choose(submission);
  Submission without;
  agents.add_defaults(without, name.value_or(""));
  return *without.priority;
}

// A priority that none would be, too, makes no difference. Version 0.1 wrote a 0 that nobody had given, and left out
// retries of 0 that somebody had.
void allow_for_defaults(boost::json::object& known, boost::json::object& asked, std::int64_t usual) {
  const auto is = [](const boost::json::object& params, const char* name, std::int64_t number) {
    const boost::json::value* const found = params.if_contains(name);
    return found != nullptr && *found == number;
  };
  const bool may_be_older = known.contains("priority");  // it always wrote one
  if (!asked.contains("priority") && is(known, "priority", 0)) known.erase("priority");
  if (!known.contains("priority") && is(asked, "priority", usual)) asked.erase("priority");
  if (may_be_older && !known.contains("retries") && is(asked, "retries", 0)) asked.erase("retries");
}

// The names of what one has and the other has not, or has otherwise; none: it is the same submission. What a client
// calls otherwise has its name.
std::vector<std::string> differences(std::string_view known, std::string_view asked, std::int64_t usual_priority) {
  if (known == asked) return {};
  boost::json::object before = params_of(known);
  boost::json::object now = params_of(asked);
  allow_for_defaults(before, now, usual_priority);
  std::set<std::string> names;
  const auto compare = [&names](const boost::json::object& one, const boost::json::object& other) {
    for (const auto& [name, value] : one) {
      const boost::json::value* const found = other.if_contains(name);
      if (found != nullptr && *found == value) continue;
      names.insert(name == "timeLimit" ? "timeoutSeconds" : name == "delay" ? "delaySeconds" : std::string(name));
    }
  };
  compare(before, now);
  compare(now, before);
  return {names.begin(), names.end()};
}

void sort_and_deduplicate(std::vector<TaskId>& ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

Intake::Intake(const base::Clock& clock, Store& store, const Agents& agents, TaskId last_id, CheckGroup check_group,
               Taken taken)
    : clock_(clock),
      store_(store),
      agents_(agents),
      check_group_(std::move(check_group)),
      taken_(std::move(taken)),
      last_id_(last_id),
      settled_(last_id) {}

void Intake::submit(Submission&& submission, Capacity room, Submitted&& submitted, Companion&& companion) {
  const auto refuse = [&](const rpc::Error& error) { submitted(tl::unexpected(error)); };
  if (const Refusal refusal = check(submission)) return refuse(*refusal);
  std::string body = to_body(submission);
  const tl::expected<bool, rpc::Error> answered = answer_by_key(submission, body, submitted);
  if (!answered) return refuse(answered.error());
  if (*answered) return;

  tl::expected<std::string, rpc::Error> name = agents_.choose(submission);
  if (!name) return refuse(name.error());
  const Agent& agent = *agents_.find(*name);  // there is one, or it would not have been chosen
  Agents::add_defaults(submission, agent);
  if (const Refusal refusal = check_group_(submission.group)) return refuse(*refusal);
  const auto provided = agents_.provide_for(process::both(agent.limits, submission.limits));
  if (!provided) return refuse(limits_not_kept(provided.error()));
  if (is_full(room)) return refuse(queue_full(room.capacity));
  const auto arriving = std::make_shared<Arriving>();
  if (const Refusal refusal = look_at_dependencies(submission.after, *arriving)) return refuse(*refusal);
  if (!store_.has_room()) return refuse(unavailable("store", "more waits to be written than it can take"));
  arriving->task = new_task(std::move(submission), std::move(*name), std::move(body));
  arriving->submitted = std::move(submitted);
  arriving->also = std::move(companion.write);
  write(arriving, companion.kind);
}

bool Intake::is_arriving(const std::vector<TaskId>& ids) const {
  return arriving_ > 0 && std::ranges::any_of(ids, [this](TaskId id) {
           if (id <= settled_ || id > last_id_) return false;
           const auto standing = store_.read([id](StoreReader& tasks) { return tasks.standing(id); });
           return standing && !*standing;
         });
}

bool Intake::wait(const Submission& submission, std::function<void()> submit) {
  const std::size_t bytes = 512 + to_body(submission).size();
  if (waiting_bytes_ + bytes > most_waiting_bytes) return false;
  waiting_bytes_ += bytes;
  waiting_.push_back({submission.after, bytes, std::move(submit)});
  return true;
}

void Intake::go_on() {
  while (!waiting_.empty() && !is_arriving(waiting_.front().after)) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= next.bytes;
    next.submit();
  }
}

Intake::Refusal Intake::check(Submission& submission) const {
  if (Refusal refusal = check_text(submission)) return refusal;
  sort_and_deduplicate(submission.after);
  if (submission.after.size() <= most_dependencies) return std::nullopt;
  return rpc::invalid_params("after", "array of at most " + std::to_string(most_dependencies) + " ids", "array");
}

NewTask Intake::new_task(Submission&& submission, std::string agent, std::string body) {
  NewTask task{.id = ++last_id_,
               .priority = *submission.priority,
               .prompt = {},
               .agent = std::move(agent),
               .group = std::move(submission.group),
               .retries = *submission.retries,
               .after = {},
               .created_at = clock_.utc(),
               .delay = submission.delay,
               .labels = std::move(submission.labels),
               .metadata = shown_metadata_text(submission),
               .key = {},
               .body = std::move(body)};
  task.not_before = submission.delay ? task.created_at + *submission.delay : submission.not_before;
  task.prompt = std::move(submission.prompt);
  task.after = std::move(submission.after);
  task.key = std::move(submission.key);
  return task;
}

void Intake::write(const std::shared_ptr<Arriving>& arriving, Change::Kind kind) {
  const NewTask& task = arriving->task;
  if (!task.key.empty()) arriving_keys_.try_emplace(task.key, arriving);
  ++arriving_;
  for (const TaskId id : arriving->after) ++needed_[id];
  Change change{.kind = kind, .bytes = 512 + 2 * task.body.size()};
  change.apply = [arriving](StoreWriter& writer) {
    const NewTask& written = arriving->task;
    writer.insert(written);
    tell_queued(writer, written);
    if (arriving->also) arriving->also(writer, written.id);
    if (!arriving->failed) return;
    Progress end{
        .state = State::failed, .completed_at = written.created_at, .error = dependency_failure(*arriving->failed)};
    write_of({.id = written.id, .agent = written.agent, .to = std::move(end)})(writer);
  };
  change.done = [this, arriving](bool kept) { arrived(*arriving, kept); };
  store_.write(std::move(change));
}

void Intake::arrived(Arriving& arriving, bool kept) {
  if (--arriving_ == 0) settled_ = last_id_;
  for (const TaskId id : arriving.after) {
    if (--needed_[id] == 0) needed_.erase(id);
  }
  NewTask& task = arriving.task;
  if (!task.key.empty()) arriving_keys_.erase(task.key);
  tl::expected<Accepted, rpc::Error> answer;
  if (kept) {
    answer = Accepted{task.id, arriving.failed ? State::failed : State::queued};
  } else {
    answer = tl::unexpected(store_.refusal());
  }
  base::AllCalls calls;
  calls.make([&] { arriving.submitted(answer); });
  if (!arriving.others.empty()) calls.make([&] { base::call_all(arriving.others, answer); });
  if (kept) {
    const Arrival arrival{.id = task.id,
                          .task = {.priority = task.priority,
                                   .retries = task.retries,
                                   .agent = std::move(task.agent),
                                   .group = std::move(task.group)},
                          .delay = task.delay,
                          .not_before = task.not_before,
                          .after = std::move(arriving.after),
                          .failed = arriving.failed};
    calls.make([&] { taken_(arrival); });
  }
  calls.make([this] { go_on(); });
  calls.check();
}

tl::expected<bool, rpc::Error> Intake::answer_by_key(const Submission& submission, const std::string& body,
                                                     const Submitted& submitted) {
  if (submission.key.empty()) return false;
  // True, or the refusal of another submission.
  const auto compare = [&](TaskId id, const std::string& known) -> tl::expected<bool, rpc::Error> {
    const std::vector<std::string> differing = differences(known, body, usual_priority(agents_, submission));
    if (!differing.empty()) return tl::unexpected(key_is_taken(id, differing));
    return true;
  };
  const auto arriving = arriving_keys_.find(submission.key);
  if (arriving != arriving_keys_.end()) {
    Arriving& known = *arriving->second;
    tl::expected<bool, rpc::Error> is_same = compare(known.task.id, known.task.body);
    if (is_same) known.others.push_back(submitted);
    return is_same;
  }
  const auto known = store_.read([&](StoreReader& tasks) { return tasks.find_key(submission.key); });
  if (!known) return tl::unexpected(known.error());
  if (!*known) return false;
  tl::expected<bool, rpc::Error> is_same = compare((*known)->id, (*known)->body);
  if (is_same) submitted(Accepted{(*known)->id, (*known)->state});
  return is_same;
}

// It is decided here, since one that has ended may be gone when the task is on disk.
Intake::Refusal Intake::look_at_dependencies(const std::vector<TaskId>& after, Arriving& arriving) const {
  for (const TaskId id : after) {
    const auto standing = store_.read([id](StoreReader& tasks) { return tasks.standing(id); });
    if (!standing) return standing.error();
    if (!*standing) return unknown_task(to_text(id));
    const State state = (*standing)->state;
    if (!has_ended(state) || state == State::completed) {
      arriving.after.push_back(id);  // one that has completed may be queued again when the task is on disk
    } else if (!arriving.failed) {
      arriving.failed = id;
    }
  }
  return std::nullopt;
}

}  // namespace duet::task
