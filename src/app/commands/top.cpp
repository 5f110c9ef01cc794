#include "app/top/top.h"

#include <unistd.h>

#include "app/client/daemon_client.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "app/top/screen.h"
#include "app/top/screen_text.h"
#include "app/top/terminal_guard.h"
#include "app/view/text_style.h"

namespace duet::app {

int run_top(const CommandLine& line) {
  if (line.flag("json"))
    throw Failure("top is for people and has no --json: 'task list --json' and 'events' are for programs");
  top::check_terminal();
  if (line.flag("trace") && isatty(STDERR_FILENO) == 1) {
    throw Failure("--trace would write over the screen: send stderr elsewhere, as in 'top --trace 2>trace.log'");
  }
  return top::draw_under_guard(top::leaving_sequence(), [&line](const top::Drawing& drawing) {
    DaemonClient daemon(line);
    daemon.connect();
    return top::Top(daemon, top::screen_text(daemon.place()), drawing, colour_wanted(STDOUT_FILENO, line.no_color))
        .run();
  });
}

}  // namespace duet::app
