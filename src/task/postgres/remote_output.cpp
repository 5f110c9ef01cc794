#include "task/postgres/remote_output.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "duet/rpc/utf8.h"
#include "task/postgres/output_sender.h"
#include "task/postgres/output_view.h"
#include "task/postgres/records.h"

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration between_reads = 300ms;
constexpr base::Duration longest_finish = 1s;
constexpr std::size_t most_asked = 100;  // between two looks
constexpr int no_such_task = -32000;

}  // namespace

void RemoteOutput::add(TaskId id, bool from_start) {
  if (!calls_.audience.wants(id) || !tasks_.try_emplace(id, Told{.from_start = from_start}).second) return;
  look_later();
  if (asking_.size() >= most_asked) return;
  last_ = id;
  place(id);
}

void RemoteOutput::look_later() {
  if (timer_) return;
  timer_ = loop_.after(between_reads, [this] { look(); });
}

bool RemoteOutput::is_wanted(TaskId id, const Told& told) const {
  return calls_.audience.wants(id) && (!told.place || !calls_.is_here(id, told.attempt + 1));
}

void RemoteOutput::look() {
  std::vector<TaskId> unwanted;
  for (const auto& [id, told] : tasks_) {
    if (!is_wanted(id, told)) unwanted.push_back(id);
  }
  for (const TaskId id : unwanted) forget(id);
  std::erase_if(asking_, [](const auto& each) { return !each.second; });
  if (tasks_.empty()) return;
  look_later();
  for (const TaskId id : in_turn()) {
    if (asking_.size() >= most_asked) return;
    last_ = id;
    if (const auto found = tasks_.find(id); found != tasks_.end()) found->second.place ? read(id) : place(id);
  }
}

// Those behind the last one, then those before.
std::vector<TaskId> RemoteOutput::in_turn() const {
  std::vector<TaskId> ids;
  for (const auto& [id, told] : tasks_) ids.push_back(id);
  std::rotate(ids.begin(), std::ranges::upper_bound(ids, last_), ids.end());
  return ids;
}

void RemoteOutput::place(TaskId id) {
  UnderWay& asking = asking_[id];
  if (asking) return;
  calls_.state(id, lifetime_.bind(asking.until([this, id](const State& state) { take_state(id, state); })));
}

void RemoteOutput::take_state(TaskId id, const State& state) {
  const auto found = tasks_.find(id);
  if (!state || found == tasks_.end()) return;
  const auto attempt = static_cast<std::uint32_t>(number_in(*state, "attempt"));
  if (!state->contains("state") || calls_.is_here(id, attempt)) return forget(id);
  const OutputView view(*state);
  found->second.place = found->second.from_start ? view.begin_of(attempt) : view.total();
  found->second.attempt = attempt;
  read(id);
}

void RemoteOutput::read(TaskId id) {
  UnderWay& asking = asking_[id];
  const bool is_last = std::ranges::any_of(finishing_, [id](const auto& finish) {
    return std::ranges::find(finish.second.ids, id) != finish.second.ids.end();
  });
  if (asking || (!is_last && !calls_.may_tell())) return;
  calls_.read({.id = id, .offset = *tasks_.at(id).place, .limit = OutputSender::largest_piece},
              lifetime_.bind(asking.until(
                  [this, id](const tl::expected<Queue::Output, rpc::Error>& output) { take_output(id, output); })));
}

void RemoteOutput::take_output(TaskId id, const tl::expected<Queue::Output, rpc::Error>& output) {
  const auto found = tasks_.find(id);
  if (!output && output.error().code() == no_such_task) return forget(id);  // it was removed
  if (!output || found == tasks_.end()) return;
  const OutputPiece& piece = output->piece;
  const std::string_view whole = output->done ? std::string_view(piece.bytes) : rpc::whole_characters(piece.bytes);
  const std::uint64_t before = *found->second.place;
  const std::uint64_t behind = piece.place_of(whole.size());
  found->second.place = behind;
  const bool has_more = behind > before && behind < piece.total;
  if (output->done) forget(id);
  const auto there = lifetime_.watch();
  if (!whole.empty()) calls_.audience.tell(id, piece.offset, Stream::mixed, whole);
  if (there() && has_more && tasks_.contains(id)) read(id);
}

void RemoteOutput::finish(const std::vector<TaskId>& ids, std::function<void()> done) {
  std::vector<TaskId> told;
  std::ranges::copy_if(ids, std::back_inserter(told), [this](TaskId id) { return tasks_.contains(id); });
  if (told.empty()) return done();
  const std::uint64_t number = ++last_finish_;
  Finish& finish = finishing_[number];
  finish.limit = loop_.after(longest_finish, [this, number] { finished(number); });
  finish.done = std::move(done);
  finish.ids = told;
  for (const TaskId id : told) {
    if (const auto found = tasks_.find(id); found != tasks_.end()) found->second.place ? read(id) : place(id);
  }
}

void RemoteOutput::forget(TaskId id) {
  tasks_.erase(id);
  std::vector<std::uint64_t> over;
  for (auto& [number, finish] : finishing_) {
    std::erase(finish.ids, id);
    if (finish.ids.empty()) over.push_back(number);
  }
  // What is still to be told of it is told before.
  for (const std::uint64_t number : over) {
    finishing_.at(number).limit = loop_.after(base::Duration::zero(), [this, number] { finished(number); });
  }
}

void RemoteOutput::finished(std::uint64_t number) {
  const auto finish = finishing_.extract(number);
  if (finish) finish.mapped().done();
}

}  // namespace duet::task::postgres
