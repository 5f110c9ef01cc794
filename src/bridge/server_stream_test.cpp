#include "bridge/server_stream.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/rpc/json_text.h"
#include "duet/transport/memory.h"

namespace duet::bridge {
namespace {

std::string framed(const std::string& body, int delta = 0) {
  return "Content-Length: " + std::to_string(static_cast<int>(body.size()) + delta) + "\r\n\r\n" + body;
}

// What a server writes, in one piece or byte by byte, and what becomes of it.
class ServerStreamTest : public testing::TestWithParam<bool> {
 protected:
  std::vector<std::string> read(const std::string& bytes, std::size_t max_body = 1000) {
    const bool in_one_piece = GetParam();
    transport::Loop loop;
    auto [near, far] = transport::memory_pair(loop, 4U << 20U);
    std::vector<std::string> events;
    ServerStream stream(loop, std::move(near), max_body,
                        {.on_message = [&](const rpc::Message&, std::string_view body) { events.emplace_back(body); },
                         .on_lost =
                             [&](const LostMessage& lost) {
                               events.push_back("lost " + std::string(lost.reason) + " id=" + std::string(lost.id) +
                                                (lost.may_be_answer ? " answer" : ""));
                               noise = stream_->noise();
                             },
                         .on_flood = [&] { events.emplace_back("flood"); },
                         .on_closed = [&] { events.emplace_back("closed"); }});
    stream_ = &stream;
    for (std::size_t i = 0; i < bytes.size(); i += in_one_piece ? bytes.size() : 1) {
      far->write(std::string_view(bytes).substr(i, in_one_piece ? bytes.size() : 1));
      for (int turn = 0; turn < 3; ++turn) loop.turn(loop.now());
    }
    far->close();
    for (int turn = 0; turn < 50; ++turn) loop.turn(loop.now());
    return events;
  }

  std::string noise;
  ServerStream* stream_ = nullptr;
};

using Events = std::vector<std::string>;
const std::string answer = R"({"jsonrpc":"2.0","id":7,"result":"ä"})";
const std::string news = R"({"jsonrpc":"2.0","method":"m"})";

TEST_P(ServerStreamTest, ReadsMessagesOneAfterAnother) {
  EXPECT_EQ(read(framed(answer) + framed(news)), (Events{answer, news, "closed"}));
}

TEST_P(ServerStreamTest, TakesAnyContentType) {
  EXPECT_EQ(read("Content-Type: text/plain; charset=latin1\r\n" + framed(answer)), (Events{answer, "closed"}));
}

TEST_P(ServerStreamTest, SkipsPrintedTextAndKeepsItsStart) {
  EXPECT_EQ(read("Hello!\n" + framed(answer) + "debug: {\"id\":3}\n" + framed(news)),
            (Events{"lost malformed-header id=", answer, "lost malformed-header id=", news, "closed"}));
  EXPECT_TRUE(noise.starts_with("debug: "));
}

TEST_P(ServerStreamTest, TakesNoOtherSeparatorForTheRightOne) {
  for (const char* separator : {"\n\n", "\r\n", "\n"}) {
    const Events events = read("Content-Length: " + std::to_string(answer.size()) + separator + answer + framed(news));
    ASSERT_EQ(events.size(), 3U);
    EXPECT_TRUE(events[0].starts_with("lost malformed-header"));
    EXPECT_EQ(events[1], news);
  }
}

TEST_P(ServerStreamTest, DoesNotBlameTextForTheAnswerBehindIt) {
  EXPECT_EQ(read("text\n" + framed(answer)), (Events{"lost malformed-header id=", answer, "closed"}));
}

TEST_P(ServerStreamTest, KnowsTheAnswerWhoseLengthIsTooSmall) {
  EXPECT_EQ(read(framed(news) + framed(answer, -4) + framed(news)),
            (Events{news, "lost invalid-json id=7 answer", news, "closed"}));
}

TEST_P(ServerStreamTest, KnowsTheAnswerWhoseLengthIsTooLarge) {
  const Events events = read(framed(answer, 30) + framed(news));
  EXPECT_EQ(events, (Events{"lost content-length-mismatch id=7 answer", news, "closed"}));
}

TEST_P(ServerStreamTest, KnowsOneLossFromAnother) {
  std::string second = answer;
  second.replace(second.find('7'), 1, "8");
  EXPECT_EQ(read(framed(answer, -4) + framed(second, -4) + framed(news)),
            (Events{"lost invalid-json id=7 answer", "lost invalid-json id=8 answer", news, "closed"}));
}

TEST_P(ServerStreamTest, DoesNotTakeANotificationForAnAnswer) {
  EXPECT_EQ(read(framed(news, -4) + framed(answer)), (Events{"lost invalid-json id=", answer, "closed"}));
}

TEST_P(ServerStreamTest, TellsOfAMessageThatIsTooLarge) {
  const std::string large = R"({"jsonrpc":"2.0","id":7,"result":")" + std::string(2000, 'x') + "\"}";
  const Events events = read(framed(large) + framed(news));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_TRUE(events[0].starts_with("lost oversize"));
  EXPECT_EQ(events[1], news);
}

TEST_P(ServerStreamTest, TellsOfAMessageThatIsCutOff) {
  EXPECT_EQ(read(framed(answer).substr(0, 50)), (Events{"lost content-length-mismatch id=7 answer", "closed"}));
}

TEST_P(ServerStreamTest, TellsOfAFlood) {
  if (!GetParam()) return;
  EXPECT_EQ(read(std::string(ServerStream::most_noise + 1, 'y')),
            (Events{"lost header-too-large id=", "flood", "closed"}));
}

INSTANTIATE_TEST_SUITE_P(InOnePieceOrByteByByte, ServerStreamTest, testing::Bool());

TEST(ServerStreamWriteTest, FramesByBytesAndTakesBackWhatWaits) {
  transport::Loop loop;
  auto [near, far] = transport::memory_pair(loop, 4U << 20U);
  ServerStream stream(
      loop, std::move(near), 1000,
      {.on_message = [](auto&&...) {}, .on_lost = [](auto&&...) {}, .on_flood = [] {}, .on_closed = [] {}});
  stream.send(rpc::encode_request("1", R"("你好")", {}), 1);
  stream.send(rpc::encode_request("2", R"("x")", {}), 2);
  EXPECT_TRUE(stream.is_waiting(2));
  EXPECT_TRUE(stream.withdraw(2));
  EXPECT_FALSE(stream.withdraw(2));
  loop.turn(loop.now());
  EXPECT_FALSE(stream.withdraw(1));
  std::string room(1000, '\0');
  const transport::Moved moved = far->read(room);
  EXPECT_EQ(room.substr(0, moved.count),
            "Content-Length: 42\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"你好\"}");
  EXPECT_EQ(stream.waiting_bytes(), 0U);
}

}  // namespace
}  // namespace duet::bridge
