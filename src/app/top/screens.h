#pragma once

#include <string>

#include "app/top/board.h"
#include "app/top/frame.h"
#include "app/top/layout.h"
#include "app/top/view.h"

namespace duet::app::top {

/// The pages of the view without their last line. They may have more or fewer lines than the screen has.
Screenful list_screen(const Board& board, const View& view, const Link& link, const Moment& moment, ScreenSize size);
Screenful task_screen(const Board& board, const View& view, const Link& link, const Moment& moment, ScreenSize size);
Screenful help_screen(ScreenSize size);

/// How long it has run, or ran; in whole seconds, so that it changes once a second.
std::string run_time_text(const TaskRow& row, base::UtcTime now);
Paint paint_of(task::State state);

}  // namespace duet::app::top
