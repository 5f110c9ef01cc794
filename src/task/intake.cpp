#include "task/intake.h"

#include <algorithm>
#include <utility>

#include "duet/base/all_calls.h"
#include "task/refusal.h"
#include "task/submission_check.h"
#include "task/transition.h"

namespace duet::task {
namespace {

constexpr std::size_t most_waiting_bytes = std::size_t{32} << 20U;  // of submissions that are not looked at yet

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

Intake::Refusal Intake::check(Submission& submission) {
  if (Refusal refusal = check_submission(submission)) return refusal;
  if (submission.on_lost) return needs_shared_queue("onLost");
  if (!submission.needs.empty()) return needs_shared_queue("needs");
  submission.here = false;  // there is nowhere else
  return std::nullopt;
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
  if (is_same) submitted(Accepted{(*known)->id, (*known)->state, false});
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
