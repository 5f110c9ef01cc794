#include "app/project/last_end.h"

#include <gtest/gtest.h>

#include "app/project/temporary_project_test.h"

namespace duet::app {
namespace {

struct LastEndTest : testing::Test {
  TemporaryProject place;
  StateFolder folder = StateFolder::make(place.project());
};

TEST_F(LastEndTest, ADaemonThatStoppedOrNeverWasLeavesNothingToTell) {
  EXPECT_FALSE(read_last_end(folder));
  folder.write_small(last_words_name, "7 2026-11-15T09:30:00.123Z\nended by SIGSEGV\n");
  EXPECT_FALSE(read_last_end(folder)) << "words of one before that";
}

TEST_F(LastEndTest, APidThatWasLeftTellsThatNobodyStoppedIt) {
  folder.write_small(pid_name, "7\n");
  const std::optional<LastEnd> end = read_last_end(folder);
  ASSERT_TRUE(end);
  EXPECT_EQ(to_text(*end), "the last one, pid 7, was killed or the machine went down");
}

TEST_F(LastEndTest, LastWordsTellMore) {
  folder.write_small(pid_name, "7\n");
  folder.write_small(last_words_name, "7 2026-11-15T09:30:00.123Z\nended by SIGSEGV\nthe line of the log\n");
  const std::optional<LastEnd> end = read_last_end(folder);
  ASSERT_TRUE(end);
  EXPECT_EQ(to_text(*end), "the last one, pid 7, ended by SIGSEGV at 2026-11-15T09:30:00.123Z");
}

TEST_F(LastEndTest, WordsOfAnotherProcessAreNotIts) {
  folder.write_small(pid_name, "7\n");
  folder.write_small(last_words_name, "77 2026-11-15T09:30:00.123Z\nended by SIGSEGV\n");
  EXPECT_EQ(read_last_end(folder)->how, "was killed or the machine went down");
}

TEST_F(LastEndTest, WordsThatWereCutAreNoTrouble) {
  folder.write_small(pid_name, "7\n");
  for (const char* const words : {"7 ", "7 2026", "7 2026\n", "7 2026\nended"}) {
    folder.write_small(last_words_name, words);
    EXPECT_TRUE(read_last_end(folder)) << words;
  }
}

}  // namespace
}  // namespace duet::app
