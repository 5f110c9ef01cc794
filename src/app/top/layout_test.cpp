#include "app/top/layout.h"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "app/view/display_text.h"
#include "app/view/table.h"
#include "duet/rpc/value.h"

namespace duet::app::top {
namespace {

using boost::json::object;

object parse(const std::string& text) { return rpc::parse_value(text).as_object(); }

const Moment noon{.now = *parse_time("2026-11-15T12:00:00.000Z")};

std::string text_of(const Screenful& screen) {
  std::string out;
  for (const Line& line : screen.frame) {
    std::string text = line.text();
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  }
  return out;
}

Board busy_board() {
  Board board;
  board.take_status(parse(R"({"health":"degraded","problems":[{"subsystem":"store","message":"no room"}],
                              "subsystems":{"supervisor":{"maxRunning":4}}})"));
  board.take_counts(parse(R"({"completed":12,"failed":1,"cancelled":0})"));
  board.take_queue(parse(R"({"paused":true,"heldAgents":[{"agent":"claude","until":"2026-11-15T15:30:00.000Z"}]})"));
  board.take_record(parse(R"({"id":"task-7","state":"running","agent":"shell","prompt":"make check",
                              "startedAt":"2026-11-15T11:57:57.000Z"})"));
  board.set_output(7, "[12/90] compiling");
  board.take_record(parse(R"({"id":"task-9","state":"queued","agent":"claude","prompt":"Fix it","priority":5})"));
  board.take_record(parse(R"({"id":"task-10","state":"queued","agent":"shell","prompt":"deploy",
                              "metadata":{"after":["task-7"]}})"));
  board.take_record(parse(R"({"id":"task-6","state":"failed","agent":"shell","prompt":"make \u001b[31mall",
                              "startedAt":"2026-11-15T11:00:00.000Z","completedAt":"2026-11-15T11:59:30.000Z",
                              "exitCode":2,"error":{"reason":"exit","message":"exited with code 2"}})"));
  return board;
}

TEST(TopLayout, ShowsWhatRunsWaitsEndedAndWhatIsWrong) {
  const Board board = busy_board();
  View view;
  view.settle(board);
  const Screenful screen = lay_out(board, view, {.place = "shop"}, noon, {.columns = 80, .rows = 24});
  EXPECT_EQ(text_of(screen),
            "duet-rpc top  shop                                                      degraded\n"
            "1 of 4 running  2 queued  12 completed  1 failed                 1/min, 1 failed\n"
            "the queue is paused: nothing new starts  claude is held until 15:30:00\n"
            "problem  store: no room\n"
            "\n"
            "RUNNING\n"
            "▸ task-7   shell      2m 3s  make check\n"
            "           [12/90] compiling\n"
            "\n"
            "QUEUED\n"
            "  task-9   claude    prio 5  agent held  Fix it\n"
            "  task-10  shell             after task-7  deploy\n"
            "\n"
            "ENDED\n"
            "  task-6   shell    59m 30s  11:59:30  exit 2      make all\n"
            "\n\n\n\n\n\n\n\n"
            "↑↓ choose   enter follow   c cancel   p resume   ? help   q quit\n");
  EXPECT_EQ(screen.running, std::vector<task::TaskId>{7});
  EXPECT_TRUE(screen.frame.at(6).chosen);
}

TEST(TopLayout, ANarrowScreenShowsTheHealthAndTheWayOut) {
  const Board board = busy_board();
  View view;
  const std::string place(60, 'x');
  const std::string text = text_of(lay_out(board, view, {.place = place}, noon, {.columns = 40, .rows = 10}));
  EXPECT_TRUE(text.starts_with("duet-rpc top  xxxxxxxxxxxxxxx…  degraded\n")) << text;
  EXPECT_TRUE(text.ends_with("\nc cancel   p resume   ? help   q quit\n")) << text;
  view.press({.kind = Key::Kind::character, .character = '?'}, board);
  const std::string help = text_of(lay_out(board, view, {.place = place}, noon, {.columns = 40, .rows = 10}));
  EXPECT_NE(help.find("quit"), std::string::npos) << help;
}

TEST(TopLayout, AWideScreenHasTheOutputBesideThePrompt) {
  const Board board = busy_board();
  const std::string text = text_of(lay_out(board, View(), {.place = "shop"}, noon, {.columns = 120, .rows = 24}));
  EXPECT_NE(text.find("make check                            [12/90] compiling\n"), std::string::npos) << text;
}

TEST(TopLayout, ASectionMovesWithTheCursorAndLeavesRoomForOthers) {
  Board board;
  for (int i = 1; i <= 100; ++i) {
    const std::string id = std::to_string(i);
    board.take_record(parse(R"({"id":"task-)" + id + R"(","state":")" + (i <= 50 ? "running" : "queued") +
                            R"(","agent":"a","prompt":"p"})"));
  }
  View view;
  view.settle(board);
  for (int i = 0; i < 20; ++i) view.press({.kind = Key::Kind::down}, board);
  const std::string text = text_of(lay_out(board, view, {}, noon, {.columns = 120, .rows = 24}));
  EXPECT_NE(text.find("RUNNING  12 of 50\n"), std::string::npos) << text;
  EXPECT_NE(text.find("▸ task-21 "), std::string::npos) << text;
  EXPECT_NE(text.find("QUEUED  3 of 50\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  task-51 "), std::string::npos) << text;
}

TEST(TopLayout, TroubleAndQuestionsAreSaid) {
  const Board board = busy_board();
  View view;
  view.settle(board);
  view.press({.kind = Key::Kind::character, .character = 'c'}, board);
  const std::string text = text_of(lay_out(board, view, {.trouble = "The daemon is gone."}, noon, {}));
  EXPECT_NE(text.find("\nThe daemon is gone.\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nCancel task-7?  y: yes   any other key: no\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("degraded"), std::string::npos) << "nobody knows that now";
}

TEST(TopLayout, ATaskIsShownWithItsOutput) {
  const Board board = busy_board();
  View view;
  view.settle(board);
  view.press({.kind = Key::Kind::enter}, board);
  for (int i = 1; i <= 40; ++i) view.followed()->output.append("line " + std::to_string(i) + "\n");
  const Screenful screen = lay_out(board, view, {}, noon, {});
  const std::string text = text_of(screen);
  EXPECT_TRUE(text.starts_with("task-7  running  shell  2m 3s\nmake check\n\nOUTPUT\nline 22\n")) << text;
  EXPECT_NE(text.find("line 40\n↑↓ scroll"), std::string::npos) << text;
  view.press({.kind = Key::Kind::up}, board);
  view.followed()->output.append("line 41\n");
  EXPECT_NE(text_of(lay_out(board, view, {}, noon, {})).find("line 39\n↑↓ scroll"), std::string::npos)
      << "who reads is not carried along";
  view.press({.kind = Key::Kind::end}, board);
  EXPECT_NE(text_of(lay_out(board, view, {}, noon, {})).find("line 41\n↑↓ scroll"), std::string::npos);
}

TEST(TopLayout, OfATaskThatWasRemovedItIsNotSaidThatItWroteNothing) {
  Board board = busy_board();
  View view;
  view.settle(board);
  view.press({.kind = Key::Kind::enter}, board);
  board.forget(7);
  EXPECT_NE(text_of(lay_out(board, view, {}, noon, {})).find("OUTPUT  nothing yet\n"), std::string::npos);
  view.followed()->why = "the task was removed";
  view.followed()->done = true;
  const std::string text = text_of(lay_out(board, view, {}, noon, {}));
  EXPECT_TRUE(text.starts_with("task-7\nthe task was removed\n\nOUTPUT\n")) << text;
}

TEST(TopLayout, TimesAreThoseOfTheClockOnTheWall) {
  const Moment here{.now = noon.now, .zone = std::chrono::hours(-5)};
  EXPECT_EQ(clock_text(noon.now, here), "07:00:00");
  EXPECT_EQ(clock_text(noon.now - std::chrono::hours(8), here), "11-14 23:00");
}

RC_GTEST_PROP(TopLayout, FitsIntoAnyScreen, (const std::string& prompt, const std::string& output)) {
  Board board = busy_board();
  board.take_record(object{{"id", "task-8"}, {"state", "running"}, {"agent", output}, {"prompt", prompt}});
  board.set_output(8, screen_text(output));
  View view;
  view.settle(board);
  if (*rc::gen::arbitrary<bool>()) view.press({.kind = Key::Kind::enter}, board);
  if (view.followed()) view.followed()->output.append(output);
  const ScreenSize size{.columns = *rc::gen::inRange<std::size_t>(0, 200),
                        .rows = *rc::gen::inRange<std::size_t>(0, 60)};
  const Screenful screen = lay_out(board, view, {.place = prompt.empty() ? "" : "x", .trouble = "gone"}, noon, size);
  RC_ASSERT(screen.frame.size() == (size.columns == 0 ? 0 : size.rows));
  for (const Line& line : screen.frame) RC_ASSERT(display_width(line.text()) <= size.columns);
}

}  // namespace
}  // namespace duet::app::top
