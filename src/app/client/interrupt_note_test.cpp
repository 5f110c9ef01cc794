#include "app/client/interrupt_note.h"

#include <signal.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

TEST(InterruptNoteDeathTest, SaysItAndEndsAsUsual) {
  EXPECT_EXIT(
      {
        const InterruptNote note("task-3 goes on");
        raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "^\n?task-3 goes on\n$");
}

TEST(InterruptNoteDeathTest, TellsTheLinesThatHaveNoEnd) {
  EXPECT_EXIT(
      {
        LinePrefixer lines({"task-3", "task-4"}, TextStyle(false), [](std::string_view) {});
        lines.take("task-4", "half");
        dup2(STDERR_FILENO, STDOUT_FILENO);
        const InterruptNote note("they go on", &lines);
        raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "^\n?task-4 \\| half\nthey go on\n$");
}

TEST(InterruptNoteDeathTest, SaysNothingOnceItIsGone) {
  EXPECT_EXIT(
      {
        { const InterruptNote note("task-3 goes on"); }
        raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "^$");
}

TEST(InterruptNote, WhoIgnoresTheSignalGoesOn) {
  signal(SIGINT, SIG_IGN);
  {
    const InterruptNote note("task-3 goes on");
    raise(SIGINT);
  }
  raise(SIGINT);
  signal(SIGINT, SIG_DFL);
}

}  // namespace
}  // namespace duet::app
