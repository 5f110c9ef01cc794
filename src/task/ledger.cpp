#include "task/ledger.h"

#include <array>

#include "duet/base/utc_text.h"
#include "task/refusal.h"

namespace duet::task {
namespace {

namespace json = boost::json;

std::int64_t& count_of(StateCounts& counts, State state) { return counts.at(static_cast<std::size_t>(state)); }

std::string_view event_kind(State state) {
  constexpr std::array<std::string_view, 5> kinds{"taskQueued", "taskStarted", "taskCompleted", "taskFailed",
                                                  "taskCancelled"};
  return kinds.at(static_cast<std::size_t>(state));
}

json::object event_params(const Transition& transition) {
  const Progress& progress = transition.to;
  json::object params{{"taskId", to_text(transition.id)},
                      {"state", name_of(progress.state)},
                      {"agent", transition.agent},
                      {"attempts", progress.attempts}};
  if (progress.retry_at) params["retryAt"] = base::utc_text(*progress.retry_at);
  if (progress.state == State::queued) return params;
  if (progress.started_at) params["startedAt"] = base::utc_text(*progress.started_at);
  if (progress.pid) params["pid"] = *progress.pid;
  if (progress.state == State::running) return params;
  if (progress.completed_at) params["completedAt"] = base::utc_text(*progress.completed_at);
  params["exitCode"] = progress.exit_code ? json::value(*progress.exit_code) : json::value(nullptr);
  params["signal"] = progress.signal.empty() ? json::value(nullptr) : json::value(progress.signal);
  if (progress.error) {
    params["error"] = {{"reason", name_of(progress.error->reason)}, {"message", progress.error->message}};
  }
  return params;
}

}  // namespace

Ledger::Ledger(transport::Loop& loop, Store& store, Emit emit)
    : loop_(loop),
      store_(store),
      emit_(std::move(emit)),
      counts_(store.read([](TaskReader& tasks) { return tasks.counts(); })) {}

Ledger::~Ledger() {
  for (auto& [ticket, waiting] : waiting_) {
    if (waiting.timer) loop_.cancel(*waiting.timer);
  }
}

void Ledger::insert(Task task, const Submission& submission, std::string body, Store::Done done) {
  Transition transition{.id = task.id, .agent = task.agent};
  store_.insert(std::move(task), submission, std::move(body),
                [this, transition = std::move(transition), done = std::move(done)](bool kept) {
                  if (kept) ++count_of(counts_, State::queued);
                  done(kept);
                  if (kept) emit_(event_kind(State::queued), event_params(transition));
                });
}

void Ledger::decide(Transition transition, Store::Done done) {
  const TaskId id = transition.id;
  const Progress to = transition.to;
  store_.decide(id, to, [this, transition = std::move(transition), done = std::move(done)](bool kept) {
    if (kept) announce(transition);
    done(kept);
  });
}

void Ledger::note(Transition transition, std::function<void()> done) {
  const TaskId id = transition.id;
  const Progress to = transition.to;
  std::optional<std::string> result = std::exchange(transition.result, {});
  const bool awaited = transition.is_awaited || (has_ended(to.state) && is_awaited(id));
  store_.note(id, to, std::move(result), awaited,
              [this, transition = std::move(transition), done = std::move(done)](bool /*kept*/) {
                announce(transition);
                if (done) done();
              });
}

void Ledger::erase(const std::vector<EndedTask>& tasks, Store::Done done) {
  std::vector<TaskId> ids;
  ids.reserve(tasks.size());
  for (const EndedTask& task : tasks) ids.push_back(task.id);
  store_.erase(std::move(ids), [this, tasks, done = std::move(done)](bool kept) {
    for (const EndedTask& task : tasks) {
      if (kept) --count_of(counts_, task.state);
    }
    done(kept);
  });
}

void Ledger::announce(const Transition& transition) {
  const State state = transition.to.state;
  --count_of(counts_, transition.from);
  ++count_of(counts_, state);
  // A decision that is still to be carried out changes nothing that anybody sees.
  if (state == transition.from && !transition.to.retry_at) return;
  emit_(event_kind(state), event_params(transition));
  if (has_ended(state)) wake(transition.id);
}

tl::expected<Task, rpc::Error> Ledger::find(TaskId id) {
  try {
    std::optional<Task> task = store_.read([id](TaskReader& tasks) { return tasks.find(id); });
    if (!task) return tl::unexpected(unknown_task(to_text(id)));
    return *std::move(task);
  } catch (const rpc::Error& error) {
    return tl::unexpected(error);
  }
}

Ledger::Ticket Ledger::wait(TaskId id, std::optional<base::Duration> limit, Waiter waiter) {
  const Ticket ticket{id, ++last_ticket_};
  Waiting& waiting = waiting_[ticket];
  waiting.waiter = std::move(waiter);
  if (limit) waiting.timer = loop_.after(*limit, [this, ticket] { time_is_up(ticket); });
  return ticket;
}

void Ledger::stop_waiting(const Ticket& ticket) {
  const auto found = waiting_.find(ticket);
  if (found == waiting_.end()) return;
  if (found->second.timer) loop_.cancel(*found->second.timer);
  waiting_.erase(found);
}

void Ledger::refuse_waiting(const rpc::Error& why) {
  for (auto& [ticket, waiting] : std::exchange(waiting_, {})) {
    if (waiting.timer) loop_.cancel(*waiting.timer);
    waiting.waiter(tl::unexpected(why));
  }
}

void Ledger::time_is_up(const Ticket& ticket) {
  const Waiter waiter = std::move(waiting_.at(ticket).waiter);
  waiting_.erase(ticket);
  waiter(find(ticket.first));
}

bool Ledger::is_awaited(TaskId id) const {
  const auto first = waiting_.lower_bound({id, 0});
  return first != waiting_.end() && first->first.first == id;
}

void Ledger::wake(TaskId id) {
  if (!is_awaited(id)) return;
  std::vector<Waiter> woken;
  for (auto at = waiting_.lower_bound({id, 0}); at != waiting_.end() && at->first.first == id;
       at = waiting_.erase(at)) {
    if (at->second.timer) loop_.cancel(*at->second.timer);
    woken.push_back(std::move(at->second.waiter));
  }
  const tl::expected<Task, rpc::Error> task = find(id);
  for (const Waiter& waiter : woken) waiter(task);
}

}  // namespace duet::task
