#include "duet/peer/output.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "duet/framing/content_length.h"
#include "duet/framing/lines.h"
#include "duet/peer/memory_use_test.h"

namespace duet::peer {
namespace {

using transport::Moved;

/// Takes what the test allows.
class Sink final : public transport::Channel {
 public:
  void open(Listener&) override {}
  void want(bool, bool) override {}
  Moved read(std::span<char>) override { return {}; }
  Moved write(std::string_view bytes) override {
    ++writes;
    if (broken) return {Moved::State::broken, 0, EPIPE};
    const std::size_t count = std::min({bytes.size(), room, most_at_once});
    if (count == 0) return {Moved::State::blocked};
    text += bytes.substr(0, count);
    room -= count;
    return {Moved::State::some, count};
  }
  void close() override {}

  std::string text;
  std::size_t room = std::string::npos;
  std::size_t most_at_once = std::string::npos;
  int writes = 0;
  bool broken = false;
};

struct Setting {
  framing::BlockPool pool;
  framing::LineEncoder encoder;
  Output output{encoder, pool};
  Sink sink;
  std::string expected;

  void add(int id, std::size_t size) {
    const std::string name = std::to_string(id);
    const std::string value = '"' + std::string(size, static_cast<char>('a' + id % 26)) + '"';
    output.add(rpc::encode_result(name, value));
    expected += R"({"jsonrpc":"2.0","id":)" + name + R"(,"result":)" + value + "}\n";
  }
};

TEST(Output, SmallMessagesGoOutTogetherInOneWrite) {
  Setting s;
  for (int i = 0; i < 100; ++i) s.add(i, 10);
  EXPECT_EQ(s.output.size(), s.expected.size());
  EXPECT_EQ(s.output.write_to(s.sink).state, Moved::State::some);
  EXPECT_EQ(s.sink.text, s.expected);
  EXPECT_EQ(s.sink.writes, 1);
  EXPECT_TRUE(s.output.empty());
  EXPECT_EQ(s.output.write_to(s.sink).state, Moved::State::some);
  EXPECT_EQ(s.sink.writes, 1);
}

TEST(Output, FramesWhatItSends) {
  framing::BlockPool pool;
  framing::ContentLengthEncoder encoder;
  Output output(encoder, pool);
  Sink sink;
  output.add(rpc::encode_result("1", "true"));
  output.write_to(sink);
  EXPECT_EQ(sink.text, "Content-Length: 38\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":true}");
}

TEST(Output, KeepsTheOrderHoweverLittleIsTakenAtATime) {
  for (const std::size_t most : {1U, 7U, 1000U, 100'000U}) {
    Setting s;
    s.sink.most_at_once = most;
    for (int i = 0; i < 20; ++i) {
      s.add(i, static_cast<std::size_t>(i) * 300);
      s.sink.room = 500;
      const Moved::State state = s.output.write_to(s.sink).state;
      EXPECT_EQ(state, s.output.empty() ? Moved::State::some : Moved::State::blocked);
      EXPECT_EQ(s.output.size() + s.sink.text.size(), s.expected.size());
    }
    s.sink.room = std::string::npos;
    EXPECT_EQ(s.output.write_to(s.sink).state, Moved::State::some);
    EXPECT_EQ(s.sink.text, s.expected);
  }
}

TEST(Output, GrowsInPortionsThatAreGivenBackAsTheyAreSent) {
  Setting s;
  s.sink.room = 0;
  const std::size_t before = allocated_bytes();
  for (int i = 0; i < 40; ++i) s.add(i, 100'000);
  for (int i = 0; i < 2; ++i) s.add(i, 1'000'000);
  const std::size_t expected_copy = s.expected.capacity();
  EXPECT_LE(allocated_bytes() - before, expected_copy + s.output.size() * 2);
  s.sink.room = 3'000'000;
  EXPECT_EQ(s.output.write_to(s.sink).state, Moved::State::blocked);
  s.sink.room = std::string::npos;
  EXPECT_EQ(s.output.write_to(s.sink).state, Moved::State::some);
  EXPECT_EQ(s.sink.text, s.expected);
  EXPECT_EQ(s.output.size(), 0U);
  s.pool.trim();
  s.sink.text = {};
  s.sink.text.shrink_to_fit();
  s.expected = {};
  s.expected.shrink_to_fit();
  EXPECT_LE(allocated_bytes(), before + 4096);
}

TEST(Output, TellsWhenTheChannelIsBroken) {
  Setting s;
  s.add(1, 10);
  s.sink.broken = true;
  EXPECT_EQ(s.output.write_to(s.sink).state, Moved::State::broken);
  EXPECT_EQ(s.output.write_to(s.sink).error, EPIPE);
  EXPECT_FALSE(s.output.empty());
}

TEST(Output, ForgetsEverythingWhenItIsCleared) {
  Setting s;
  s.sink.room = 100;
  s.add(1, 300'000);
  s.add(2, 300'000);
  s.add(3, 10);
  s.output.write_to(s.sink);
  s.output.clear();
  EXPECT_TRUE(s.output.empty());
  s.sink.text.clear();
  s.expected.clear();
  s.sink.room = std::string::npos;
  s.add(4, 10);
  s.output.write_to(s.sink);
  EXPECT_EQ(s.sink.text, s.expected);
}

}  // namespace
}  // namespace duet::peer
