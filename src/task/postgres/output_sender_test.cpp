#include "task/postgres/output_sender.h"

#include <fcntl.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;

class OutputSenderTest : public testing::Test {
 protected:
  void write(const std::string& bytes) {
    std::ofstream(folder_.file(output_name(run_)), std::ios::binary | std::ios::app) << bytes;
  }
  /// `0:abc 3:d total 4 dropped 2-3`.
  static std::string shown(const OutputSender::Portion& portion) {
    std::string text;
    for (const OutputSender::Piece& piece : portion.pieces) {
      text += std::to_string(piece.offset) + ':' + piece.bytes + ' ';
    }
    text += "total " + std::to_string(portion.total);
    for (const OutputRange& gap : portion.dropped) {
      text += " dropped " + std::to_string(gap.from) + '-' + std::to_string(gap.to);
    }
    return text;
  }

  RunId run_{7, 1};
  transport::TemporaryFolder folder_;
  base::Fd tasks_{open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(OutputSenderTest, SendsWhatIsNew) {
  OutputSender sender(tasks_.get(), run_, 100);
  EXPECT_TRUE(sender.next(100, false).is_empty());
  write("abc");
  EXPECT_EQ(shown(sender.next(100, false)), "0:abc total 3");
  sender.arrived();
  EXPECT_TRUE(sender.next(100, false).is_empty());
  write("d");
  EXPECT_EQ(shown(sender.next(100, true)), "3:d total 4");
}

TEST_F(OutputSenderTest, WhatDidNotArriveIsSentAgain) {
  OutputSender sender(tasks_.get(), run_, 100);
  write("abc");
  sender.next(100, false);
  write("d");
  EXPECT_EQ(shown(sender.next(100, false)), "0:abcd total 4");
}

TEST_F(OutputSenderTest, WhatANewServerLacksAndTheFileHasNoMoreIsDropped) {
  OutputSender sender(tasks_.get(), run_, 100);
  write("abcd");
  sender.next(100, true);
  sender.arrived();
  sender.go_back_to(1);
  EXPECT_EQ(shown(sender.next(100, true)), "1:bcd total 4");
  std::filesystem::remove(folder_.file(output_name(run_)));
  EXPECT_EQ(shown(sender.next(100, true)), "total 4 dropped 1-4");
}

TEST_F(OutputSenderTest, OfMuchTheFirstAndTheLastHalfOfTheBoundStay) {
  OutputSender sender(tasks_.get(), run_, 8);
  write("0123456789abcdef");
  EXPECT_EQ(sender.left(), 8U);
  EXPECT_EQ(shown(sender.next(100, true)), "0:0123 12:cdef total 16 dropped 4-12");
}

TEST_F(OutputSenderTest, TheTailMovesOn) {
  OutputSender sender(tasks_.get(), run_, 8);
  write("012345");
  EXPECT_EQ(shown(sender.next(100, false)), "0:0123 4:45 total 6");
  sender.arrived();
  write("6789");
  EXPECT_EQ(shown(sender.next(100, false)), "6:6789 total 10 dropped 4-6");
}

TEST_F(OutputSenderTest, WithoutABoundNothingIsSentButHowMuchItWas) {
  OutputSender sender(tasks_.get(), run_, 0);
  write("abc");
  const OutputSender::Portion portion = sender.next(100, true);
  EXPECT_FALSE(portion.is_empty());
  EXPECT_EQ(shown(portion), "total 3 dropped 0-3");
}

TEST_F(OutputSenderTest, NoMoreThanAllowedAtOnceUnlessItIsTheLast) {
  OutputSender sender(tasks_.get(), run_, 1U << 20U);
  write(std::string(3 * OutputSender::largest_piece, 'x'));
  EXPECT_EQ(sender.next(1, false).pieces.size(), 1U);
  EXPECT_EQ(sender.left(), 3 * OutputSender::largest_piece);
  EXPECT_EQ(sender.next(1, true).pieces.size(), 3U);
}

TEST(OutputBudget, IsSavedUpForTenSeconds) {
  OutputBudget budget(100);
  const base::TimePoint start{1h};
  EXPECT_EQ(budget.left(start), 1000);
  budget.spend(1500);
  EXPECT_EQ(budget.left(start), -500);
  EXPECT_EQ(budget.left(start + 2s), -300);
  EXPECT_EQ(budget.left(start + 7s), 200);
  EXPECT_EQ(budget.left(start + 1h), 1000);
}

}  // namespace
}  // namespace duet::task::postgres
