#pragma once

#include <functional>

#include "duet/base/clock.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// Notices that nobody has used the daemon for a while. It asks now and then whether somebody does, so that nobody has
/// to tell it of every end; who comes and goes in between is told by note_use(). The end is never told too early, and
/// at most `longest_pause` too late. For the loop's thread.
class IdleWatch {
 public:
  static constexpr base::Duration longest_pause = std::chrono::seconds(5);

  struct Calls {
    std::function<bool()> is_used;
    std::function<void()> end;  ///< once
  };
  IdleWatch(transport::Loop& loop, base::Duration limit, Calls calls);
  IdleWatch(const IdleWatch&) = delete;
  IdleWatch& operator=(const IdleWatch&) = delete;

  void note_use() { unused_since_ = loop_.now(); }

 private:
  void look();

  transport::Loop& loop_;
  base::Duration limit_;
  Calls calls_;
  bool was_used_ = false;
  base::TimePoint unused_since_;
  transport::Loop::Timer timer_;
};

}  // namespace duet::app
