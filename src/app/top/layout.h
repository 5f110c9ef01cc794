#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "app/top/board.h"
#include "app/top/frame.h"
#include "app/top/view.h"
#include "duet/base/clock.h"

namespace duet::app::top {

/// How it stands with the daemon, in words for people.
struct Link {
  std::string place = {};    ///< the project, or the socket
  std::string trouble = {};  ///< empty: it is there and answers
};

/// What time it is, for people.
struct Moment {
  base::UtcTime now = {};
  std::chrono::seconds zone = {};  ///< what the clock on the wall is ahead of UTC
};

/// A screen ready to be drawn.
struct Screenful {
  Frame frame = {};
  std::vector<task::TaskId> running = {};  ///< the running tasks on it
  std::size_t page_rows = 0;               ///< how many rows a page has
};

/// Lays out what there is to see for a screen of this size: exactly as many lines as it has rows, none wider than it.
///
/// Small screens show less: first the empty lines go, then what explains, then sections from the bottom. What does not
/// change from one moment to the next is the same text, so that nothing is drawn for it.
Screenful lay_out(const Board& board, const View& view, const Link& link, const Moment& moment, ScreenSize size);

/// `14:02:11`, or `11-17 14:02` on another day.
std::string clock_text(base::UtcTime time, const Moment& moment);

}  // namespace duet::app::top
