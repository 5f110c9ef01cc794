#include "task/postgres/changes.h"

#include <utility>

namespace duet::task::postgres {
namespace {

// The line's own word comes first: it may know that a call was never sent.
constexpr base::Duration grace = std::chrono::milliseconds(50);

}  // namespace

void Changes::call(std::string_view function, std::vector<Argument> arguments, Done done) {
  const std::uint64_t number = ++last_;
  Change& change = changes_[number];
  change.function = function;
  change.arguments = std::move(arguments);
  change.done = std::move(done);
  change.until = loop_.now() + patience;
  change.deadline = loop_.after(patience + grace, [this, number] { give_up(number); });
  send(number);
}

void Changes::joined() {
  std::vector<std::uint64_t> waiting;
  for (const auto& [number, change] : changes_) {
    if (!change.under_way) waiting.push_back(number);
  }
  for (const std::uint64_t number : waiting) send(number);
}

void Changes::send(std::uint64_t number) {
  Change& change = changes_.at(number);
  if (!membership_.is_joined()) return;
  change.under_way = true;
  change.incarnation = membership_.incarnation();
  membership_.call(Line::Way::work, change.function, change.arguments,
                   lifetime_.bind([this, number](const Answer& answer) { take(number, answer); }));
}

void Changes::take(std::uint64_t number, const Answer& answer) {
  const auto found = changes_.find(number);
  if (found == changes_.end()) return;  // it was given up
  Change& change = found->second;
  change.under_way = false;
  const bool is_lost = !answer && answer.error().kind == Fault::Kind::unknown;
  const bool is_fenced = !answer && answer.error().sqlstate == Membership::fenced_state;
  if (!is_lost && !is_fenced) return finish(number, answer);
  change.problem = answer.error().message;
  change.again = change.again || is_lost;
  if (loop_.now() >= change.until) return give_up(number);
  const bool is_another = change.incarnation != membership_.incarnation();  // we have joined anew meanwhile
  if (is_lost || is_another) send(number);                                  // it waits for the next connection
}

void Changes::give_up(std::uint64_t number) {
  const Change& change = changes_.at(number);
  const bool may_turn_up = change.again || change.under_way;
  finish(number, tl::unexpected(
                     Fault{may_turn_up ? Fault::Kind::unknown : Fault::Kind::never, "", std::string(change.problem)}));
}

void Changes::finish(std::uint64_t number, const Answer& answer) {
  const auto found = changes_.find(number);
  const Change change = std::move(found->second);
  changes_.erase(found);
  change.done(answer, change.again);
}

}  // namespace duet::task::postgres
