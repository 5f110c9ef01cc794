#include "app/view/table.h"

#include <gtest/gtest.h>

#include "app/view/display_text.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;

const TextStyle plain(false);

Table tasks() {
  Table table({"ID", "STATE", "PROMPT"});
  table.add({{"task-1"}, {"completed", Table::Paint::good}, {"Fix the tests"}});
  table.add({{"task-12"}, {"failed", Table::Paint::fault}, {"Write\nmore"}});
  table.add({{"task-3"}, {""}, {""}});
  return table;
}

TEST(Table, LinesColumnsUp) {
  EXPECT_EQ(tasks().text(plain, std::nullopt),
            "ID       STATE      PROMPT\n"
            "task-1   completed  Fix the tests\n"
            "task-12  failed     Write more\n"
            "task-3\n");
}

TEST(Table, CutsTheLastColumnFirst) {
  EXPECT_EQ(tasks().text(plain, 28),
            "ID       STATE      PROMPT\n"
            "task-1   completed  Fix the…\n"
            "task-12  failed     Write m…\n"
            "task-3\n");
  EXPECT_EQ(tasks().text(plain, 20),
            "ID       STATE  PRO…\n"
            "task-1   comp…  Fix…\n"
            "task-12  fail…  Wri…\n"
            "task-3\n");
}

TEST(Table, LeavesColumnsOutBeforeItCutsWhatIsToBeTypedAgain) {
  Table table({"ID", "OUTCOME", "COUNT", "TASK", "CAUSE"});
  table.add({{"firing-12"}, {"fired"}, {"1"}, {"task-117"}, {"file.modify src/basket.py"}});
  EXPECT_EQ(table.text(plain, 38),
            "ID         OUTC…  COU…  TASK      CAU…\n"
            "firing-12  fired  1     task-117  fil…\n");
  EXPECT_EQ(table.text(plain, 25),
            "ID         OUT…  TASK\n"
            "firing-12  fir…  task-117\n");
  EXPECT_EQ(table.text(plain, 20),
            "ID         TASK\n"
            "firing-12  task-117\n");
}

TEST(Table, FitsWideCharacters) {
  Table table({"A", "B"});
  table.add({{"日本"}, {"語語語語語語"}});
  EXPECT_EQ(table.text(plain, 12), "A     B\n日本  語語…\n");
}

TEST(Table, ColoursTakeNoRoom) {
  const std::string text = tasks().text(TextStyle(true), 28);
  EXPECT_NE(text.find("\x1b[32mcompleted\x1b[0m  Fix the…\n"), std::string::npos);
  EXPECT_NE(text.find("\x1b[1;31mfailed\x1b[0m     Write m…\n"), std::string::npos);
}

TEST(Table, FitsAnyTerminal) {
  for (std::size_t width = 16; width < 60; ++width) {
    const std::string text = tasks().text(plain, width);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      EXPECT_LE(display_width(text.substr(at, end - at)), width);
      at = end + 1;
    }
  }
}

TEST(RelativeTime, IsInTheLargestUnit) {
  const auto now = *parse_time("2026-11-15T09:30:00.500Z");
  EXPECT_EQ(relative_time("2026-11-15T09:30:00.123Z", now), "just now");
  EXPECT_EQ(relative_time("2026-11-15T09:29:41.123Z", now), "19s ago");
  EXPECT_EQ(relative_time("2026-11-15T09:26:10.000Z", now), "3m ago");
  EXPECT_EQ(relative_time("2026-11-13T09:26:10.000Z", now), "2d ago");
  EXPECT_EQ(relative_time("2026-11-15T09:32:10.000Z", now), "in 2m");
}

TEST(RelativeTime, LeavesOtherTextsAlone) {
  for (const char* text : {"", "yesterday", "2026-13-15T09:30:00.123Z", "2026-11-15T09:30:00.123", "2026-11-15"}) {
    EXPECT_EQ(relative_time(text, {}), text);
  }
}

TEST(TerminalWidth, IsNothingWithoutATerminal) { EXPECT_EQ(terminal_width(-1), std::nullopt); }

}  // namespace
}  // namespace duet::app
