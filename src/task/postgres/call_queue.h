#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "duet/base/clock.h"
#include "task/postgres/session.h"

namespace duet::task::postgres {

/// A statement with its time.
struct Call {
  Statement statement;
  Line::Done done;  ///< empty: it has been answered already
  base::TimePoint deadline;
  int repeats = 0;        ///< how often it was tried again
  bool may_move = false;  ///< to another connection, while nobody has been sent it
  bool is_guest = false;  ///< it has come from another connection: it waits behind those that belong here

  bool is_read() const { return may_move || is_guest; }
  /// Answers it, once.
  void answer(const Answer& answer) {
    if (const Line::Done called = std::exchange(done, nullptr)) called(answer);
  }
};

/// Calls that wait for their turn. It knows how many bytes they are. Pure.
class CallQueue {
 public:
  bool empty() const { return calls_.empty(); }
  std::size_t size() const { return calls_.size(); }
  std::size_t bytes() const { return bytes_; }

  void push_back(Call call) {
    count(call, 1);
    auto place = calls_.end();
    while (!call.is_guest && place != calls_.begin() && std::prev(place)->is_guest) --place;
    calls_.insert(place, std::move(call));
  }
  void push_front(Call call) {
    count(call, 1);
    calls_.push_front(std::move(call));
  }
  Call pop() {
    Call call = std::move(calls_.front());
    calls_.pop_front();
    count(call, -1);
    return call;
  }

  bool has_movable() const { return movable_ > 0; }
  /// Those that may go over another connection, in order; they are not here any more.
  std::vector<Call> take_movable() {
    const auto first =
        std::stable_partition(calls_.begin(), calls_.end(), [](const Call& call) { return !call.may_move; });
    std::vector<Call> taken(std::make_move_iterator(first), std::make_move_iterator(calls_.end()));
    calls_.erase(first, calls_.end());
    for (const Call& call : taken) count(call, -1);
    return taken;
  }

  /// That of the first one, whose time is up first: all wait equally long.
  std::optional<base::TimePoint> deadline() const {
    return calls_.empty() ? std::nullopt : std::optional(calls_.front().deadline);
  }

 private:
  void count(const Call& call, int sign) {
    bytes_ += static_cast<std::size_t>(sign) * call.statement.bytes();
    movable_ += call.may_move ? sign : 0;
  }

  std::deque<Call> calls_;
  std::size_t bytes_ = 0;
  std::ptrdiff_t movable_ = 0;
};

}  // namespace duet::task::postgres
