#include "task/postgres/output_view.h"

#include <gtest/gtest.h>

#include "duet/rpc/value.h"
#include "task/postgres/argument.h"

namespace duet::task::postgres {
namespace {

boost::json::object state(const std::string& text) { return rpc::parse_value(text).as_object(); }

Result pieces(const std::vector<Result::Row>& rows) { return {{"attempt", "start", "bytes", "marks"}, rows}; }

std::string shown(const Queue::Output& output) {
  const OutputPiece& piece = output.piece;
  std::string text = std::to_string(piece.offset) + ' ' + piece.bytes + ' ' + std::to_string(piece.next);
  if (piece.dropped) text += " dropped " + std::to_string(piece.dropped->to - piece.dropped->from);
  return text + (output.gap_follows ? " gap" : "") + (output.done ? " done" : "");
}

TEST(OutputView, AttemptsFollowEachOther) {
  const OutputView view(state(
      R"({"attempts":[{"attempt":1,"total":3,"dropped":[],"last":true},{"attempt":2,"total":4,"dropped":[],"last":true}],"state":2})"));
  EXPECT_EQ(view.total(), 7U);
  const Result rows = pieces({{"1", "0", bytes_of("abc"), ""}, {"2", "0", bytes_of("defg"), ""}});
  EXPECT_EQ(shown(view.read(rows, 0, 100, {})), "0 abcdefg 7 done");
  EXPECT_EQ(shown(view.read(rows, 2, 3, {})), "2 cde 5");
  EXPECT_EQ(shown(view.read(rows, 99, 3, {})), "7  7 done");
}

TEST(OutputView, AReadInTheDroppedMiddleSaysSo) {
  const OutputView view(state(R"({"attempts":[{"attempt":1,"total":100,"dropped":[[2,96]],"last":true}],"state":2})"));
  EXPECT_EQ(view.start(1), 1U);
  EXPECT_EQ(view.start(2), 96U);
  const Result rows = pieces({{"1", "0", bytes_of("ab"), ""}, {"1", "96", bytes_of("wxyz"), ""}});
  EXPECT_EQ(shown(view.read(rows, 0, 100, {})), "0 ab 2 gap");
  EXPECT_EQ(shown(view.read(rows, 2, 100, {})), "96 wxyz 100 dropped 94 done");
}

TEST(OutputView, OfOneStreamTheOtherIsSkipped) {
  const OutputView view(state(R"({"attempts":[{"attempt":1,"total":6,"dropped":[],"last":true}],"state":2})"));
  const Result rows = pieces({{"1", "0", bytes_of("ooeemm"), "0o2e4m"}});
  EXPECT_EQ(shown(view.read(rows, 0, 100, Stream::err)), "0 eemm 6 done");
  EXPECT_EQ(shown(view.read(rows, 0, 100, Stream::out)), "0 oomm 6 done");
}

TEST(OutputView, WhatALostWorkerDidNotSendIsDropped) {
  const OutputView lost(state(R"({"attempts":[{"attempt":1,"total":9,"dropped":[],"last":false}],"state":3})"));
  EXPECT_EQ(shown(lost.read(pieces({{"1", "0", bytes_of("abc"), ""}}), 0, 100, {})), "0 abc 3 gap");
  EXPECT_EQ(shown(lost.read(pieces({}), 3, 100, {})), "9  9 dropped 6 done");
  const OutputView again(state(
      R"({"attempts":[{"attempt":1,"total":9,"dropped":[],"last":false},{"attempt":2,"total":2,"dropped":[],"last":true}],"state":2})"));
  EXPECT_EQ(shown(again.read(pieces({{"2", "0", bytes_of("xy"), ""}}), 3, 100, {})), "9 xy 11 dropped 6 done");
}

TEST(OutputView, WhatRunsIsNotDone) {
  const OutputView running(state(R"({"attempts":[{"attempt":1,"total":1,"dropped":[],"last":false}],"state":1})"));
  EXPECT_EQ(shown(running.read(pieces({{"1", "0", bytes_of("a"), ""}}), 0, 9, {})), "0 a 1");
  const OutputView never(state(R"({"attempts":[],"state":4})"));
  EXPECT_EQ(shown(never.read(pieces({}), 0, 9, {})), "0  0 done");
}

}  // namespace
}  // namespace duet::task::postgres
