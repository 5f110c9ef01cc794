#include "app/client/interrupt_note.h"

#include <signal.h>

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
