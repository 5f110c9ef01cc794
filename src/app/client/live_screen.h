#pragma once

#include <cstddef>
#include <string_view>

#include "duet/base/fd.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// The other screen of the terminal that stdout is, for a command that paints it again and again.
///
/// The first screen comes back, as it was, when this goes and when a signal ends or stops the program; SIGKILL leaves
/// no time for that. One at a time: signals have no other place.
class LiveScreen final : transport::Loop::Watcher {
 public:
  struct Size {
    std::size_t columns = 80;
    std::size_t rows = 24;
  };

  explicit LiveScreen(transport::Loop& loop);
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;
  ~LiveScreen();

  /// Lines that fit: no more than there are rows, none wider than the columns.
  void paint(std::string_view text);
  static Size size();
  /// It has another size, or the program was stopped and goes on.
  bool needs_paint() const { return needs_paint_; }

 private:
  void on_ready(std::uint32_t events) override;

  base::Fd woken_;  // a byte in it: a signal came
  base::Fd waking_;
  transport::Loop::Watch watch_;
  bool needs_paint_ = true;
};

}  // namespace duet::app
