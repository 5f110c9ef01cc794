#pragma once

#include <functional>
#include <optional>

#include "app/client/daemon_client.h"
#include "app/top/feed.h"
#include "app/top/layout.h"
#include "app/top/screen.h"
#include "app/top/terminal_guard.h"
#include "app/top/view.h"
#include "duet/transport/loop.h"
#include "process/signals.h"

namespace duet::app::top {

/// `duet-rpc top`: puts together what is known, what is looked at, and the terminal, on one loop.
///
/// It draws when something has changed, at most ten times a second, and nothing where the screen would be the same. A
/// timer comes every second while something runs, which the time on the screen shows, else every five.
class Top {
 public:
  /// `daemon` is connected, and the terminal was checked.
  Top(DaemonClient& daemon, const std::string& place, const Drawing& drawing, bool coloured);
  Top(const Top&) = delete;
  Top& operator=(const Top&) = delete;

  /// Until somebody quits. Returns the exit code.
  int run();

 private:
  /// Calls a function when a descriptor is readable.
  class Readable final : transport::Loop::Watcher {
   public:
    Readable(transport::Loop& loop, int fd, std::function<void(std::uint32_t events)> call);

   private:
    void on_ready(std::uint32_t events) override { call_(events); }

    std::function<void(std::uint32_t)> call_;
    transport::Loop::Watch watch_;
  };

  void take_signal(int signal);
  void read_keys(std::uint32_t events);
  void do_what_is_wished(const View::Wish& wish);
  void suspend();
  void cancel(task::TaskId number);
  void pause();

  void changed();
  void draw();
  void tick();
  void tick_within(base::Duration wait);

  void follow();
  void look_after_followed();
  void explain();
  void read_on(task::TaskId number, std::uint64_t end);
  void read_later(bool is_busy);
  void say_it_was_removed();

  transport::Loop& loop_;
  process::Signals signals_;
  Screen screen_;
  Feed feed_;
  View view_;
  Screenful shown_;
  bool is_stale_ = true;  // the terminal does not show shown_
  std::optional<int> code_;
  int empty_reads_ = 0;
  base::TimePoint drawn_;
  base::TimePoint next_tick_;
  base::Duration pause_before_reading_{};
  transport::Loop::Timer drawing_;
  transport::Loop::Timer ticking_;
  transport::Loop::Timer reading_;
  Readable keys_;
  Readable parent_;
};

}  // namespace duet::app::top
