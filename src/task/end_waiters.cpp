#include "task/end_waiters.h"

#include <vector>

#include "duet/base/all_calls.h"
#include "task/refusal.h"

namespace duet::task {

tl::expected<Task, rpc::Error> find_task(Store& store, TaskId id) {
  auto found = store.read([id](StoreReader& tasks) { return tasks.find(id); });
  if (!found) return tl::unexpected(found.error());
  if (!*found) return tl::unexpected(unknown_task(to_text(id)));
  return **std::move(found);
}

EndWaiters::Ticket EndWaiters::wait(TaskId id, std::optional<base::Duration> limit, Waiter waiter) {
  const Ticket ticket{id, ++last_ticket_};
  Waiting& waiting = waiting_[ticket];
  waiting.waiter = std::move(waiter);
  if (limit) waiting.timer = loop_.after(*limit, [this, ticket] { time_is_up(ticket); });
  return ticket;
}

void EndWaiters::stop_waiting(const Ticket& ticket) { waiting_.erase(ticket); }

bool EndWaiters::is_awaited(TaskId id) const {
  const auto first = waiting_.lower_bound({id, 0});
  return first != waiting_.end() && first->first.first == id;
}

void EndWaiters::take(TaskId id) {
  if (!is_awaited(id)) return;
  std::vector<Waiter> woken;
  for (auto at = waiting_.lower_bound({id, 0}); at != waiting_.end() && at->first.first == id;
       at = waiting_.erase(at)) {
    woken.push_back(std::move(at->second.waiter));
  }
  const tl::expected<Task, rpc::Error> task = find_task(store_, id);
  base::call_all(woken, task);
}

void EndWaiters::refuse_all(const rpc::Error& why) {
  std::vector<Waiter> refused;
  for (auto& [ticket, waiting] : std::exchange(waiting_, {})) refused.push_back(std::move(waiting.waiter));
  base::call_all(refused, tl::expected<Task, rpc::Error>(tl::unexpected(why)));
}

void EndWaiters::time_is_up(const Ticket& ticket) {
  const Waiter waiter = std::move(waiting_.at(ticket).waiter);
  waiting_.erase(ticket);
  waiter(find_task(store_, ticket.first));
}

}  // namespace duet::task
