#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "duet/base/clock.h"
#include "task/postgres/session.h"

namespace duet::task::postgres {

/// A statement with its time.
struct Call {
  Statement statement;
  Line::Done done;  ///< empty: it has been answered already
  base::TimePoint deadline;
  int repeats = 0;  ///< how often it was tried again

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
    bytes_ += call.statement.bytes();
    calls_.push_back(std::move(call));
  }
  void push_front(Call call) {
    bytes_ += call.statement.bytes();
    calls_.push_front(std::move(call));
  }
  Call pop() {
    Call call = std::move(calls_.front());
    calls_.pop_front();
    bytes_ -= call.statement.bytes();
    return call;
  }

  /// That of the first one, whose time is up first: all wait equally long.
  std::optional<base::TimePoint> deadline() const {
    return calls_.empty() ? std::nullopt : std::optional(calls_.front().deadline);
  }

 private:
  std::deque<Call> calls_;
  std::size_t bytes_ = 0;
};

}  // namespace duet::task::postgres
