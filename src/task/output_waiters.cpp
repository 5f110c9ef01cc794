#include "task/output_waiters.h"

#include <utility>

#include "duet/base/all_calls.h"

namespace duet::task {

OutputWaiters::Ticket OutputWaiters::wait(TaskId id, base::Duration limit, Look look) {
  const Ticket ticket{id, ++last_ticket_};
  waiting_[ticket] = {std::move(look), loop_.after(limit, [this, ticket] { this->look(ticket, true); })};
  return ticket;
}

bool OutputWaiters::is_awaited(TaskId id) const {
  const auto first = waiting_.lower_bound({id, 0});
  return first != waiting_.end() && first->first.first == id;
}

std::vector<TaskId> OutputWaiters::awaited() const {
  std::vector<TaskId> ids;
  for (const auto& [ticket, waiting] : waiting_) {
    if (ids.empty() || ids.back() != ticket.first) ids.push_back(ticket.first);
  }
  return ids;
}

// A look may be the end of another one that waits, or the beginning.
void OutputWaiters::take(TaskId id) {
  std::vector<Ticket> tickets;
  for (auto at = waiting_.lower_bound({id, 0}); at != waiting_.end() && at->first.first == id; ++at) {
    tickets.push_back(at->first);
  }
  base::AllCalls calls;
  for (const Ticket& ticket : tickets) calls.make([&] { look(ticket, false); });
  calls.check();
}

void OutputWaiters::end() {
  base::AllCalls calls;
  while (!waiting_.empty()) calls.make([this] { look(waiting_.begin()->first, true); });
  calls.check();
}

void OutputWaiters::look(const Ticket& ticket, bool is_last) {
  auto waiting = waiting_.extract(ticket);
  if (!waiting || waiting.mapped().look(is_last) || is_last) return;
  waiting_.insert(std::move(waiting));
}

}  // namespace duet::task
