#include "duet/peer/lost_text.h"

#include <string>

#include <gtest/gtest.h>

namespace duet::peer {
namespace {

TEST(LostText, KnowsHowWhatFollowsTheLastMessageBegins) {
  LostText text;
  text.begin_chunk("message rest");
  text.begin_message(5);
  EXPECT_EQ(text.start(), "message");
  EXPECT_EQ(text.known(), "message rest");
  text.end_message(" rest");
  text.end_chunk();
  text.begin_chunk(" of it");
  text.begin_message(0);
  EXPECT_EQ(text.start(), " rest of it");
  EXPECT_EQ(text.received(), 18U);
}

TEST(LostText, KnowsWhatCameInEarlierChunksAndFollowsTheMessage) {
  LostText text;
  for (const std::string_view chunk : {"message", " rest", " of"}) {
    text.begin_chunk(chunk);
    text.end_chunk();
  }
  text.begin_chunk(" it");  // only now is it known that another message began behind the first one
  text.begin_message(11);
  EXPECT_EQ(text.start(), "message");
  text.end_message("message rest of it");
  text.begin_message(0);
  EXPECT_EQ(text.start(), " rest of it");
}

TEST(LostText, AMessageEndsWhereItEndsThoughMoreWasKept) {
  LostText text;
  text.begin_chunk("line\r");
  text.end_chunk();
  text.begin_chunk("\n");
  text.begin_message(2);
  EXPECT_EQ(text.start(), "line");
  EXPECT_EQ(text.known(), "line\r\n");
}

TEST(LostText, KeepsTheFirstFewHundredBytes) {
  LostText text;
  for (int i = 0; i < 10; ++i) {
    const std::string chunk(100, static_cast<char>('a' + i));
    text.begin_chunk(chunk);
    text.end_chunk();
  }
  EXPECT_EQ(text.known(), std::string(100, 'a') + std::string(100, 'b') + std::string(100, 'c'));
}

TEST(LostText, TellsTheStartOfAnAnswerFromAnythingElse) {
  const std::string answer = R"({"jsonrpc":"2.0","id":7,"result":1)";
  EXPECT_EQ(start_of_answer("Content-Length: 99\r\n\r\n" + answer, false), "Content-Length: 99\r\n\r\n" + answer);
  EXPECT_EQ(start_of_answer(answer + "Content-Length: 2\r\n\r\n{}", false), answer);
  EXPECT_EQ(start_of_answer(R"({"jsonrpc":"2.0","id":7,"method":"m")", false), "");
  EXPECT_EQ(start_of_answer("debug {\"id\":7}", false), "");
  EXPECT_EQ(start_of_answer("text\nContent-Length: 40\r\n\r\n" + answer, true), "");
}

TEST(LostText, ReadsAnIdOnlyWhereAllOfItIsThere) {
  EXPECT_EQ(visible_id(R"({"jsonrpc":"2.0","id": 17,"result":1)"), "17");
  EXPECT_EQ(visible_id(R"({"jsonrpc":"2.0","id":17)"), "");
  EXPECT_EQ(visible_id(R"({"jsonrpc":"2.0","result":{"id":17,)"), "");
  EXPECT_EQ(visible_id(R"({"jsonrpc":"2.0","result":1)"), "");
}

}  // namespace
}  // namespace duet::peer
