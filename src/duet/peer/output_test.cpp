#include "duet/peer/output.h"

#include <algorithm>
#include <ctime>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "duet/framing/content_length.h"
#include "duet/framing/lines.h"
#include "duet/peer/memory_use_test.h"

namespace duet::peer {
namespace {

/// Takes what the test allows.
struct Sink {
  void write_all(Output& output) {
    while (!output.empty()) {
      ++writes;
      const std::string_view bytes = output.front();
      const std::size_t count = std::min({bytes.size(), room, most_at_once});
      if (count == 0) return;
      text += bytes.substr(0, count);
      room -= count;
      output.written(count);
    }
  }

  std::string text;
  std::size_t room = std::string::npos;
  std::size_t most_at_once = std::string::npos;
  int writes = 0;
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
  s.sink.write_all(s.output);
  EXPECT_TRUE(s.output.empty());
  EXPECT_EQ(s.sink.text, s.expected);
  EXPECT_EQ(s.sink.writes, 1);
  EXPECT_TRUE(s.output.empty());
}

TEST(Output, FramesWhatItSends) {
  framing::BlockPool pool;
  framing::ContentLengthEncoder encoder;
  Output output(encoder, pool);
  Sink sink;
  output.add(rpc::encode_result("1", "true"));
  sink.write_all(output);
  EXPECT_EQ(sink.text, "Content-Length: 38\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":true}");
}

TEST(Output, KeepsTheOrderHoweverLittleIsTakenAtATime) {
  for (const std::size_t most : {1U, 7U, 1000U, 100'000U}) {
    Setting s;
    s.sink.most_at_once = most;
    for (int i = 0; i < 20; ++i) {
      s.add(i, static_cast<std::size_t>(i) * 300);
      s.sink.room = 500;
      s.sink.write_all(s.output);
      EXPECT_EQ(s.output.size() + s.sink.text.size(), s.expected.size());
    }
    s.sink.room = std::string::npos;
    s.sink.write_all(s.output);
    EXPECT_TRUE(s.output.empty());
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
  s.sink.write_all(s.output);
  EXPECT_FALSE(s.output.empty());
  s.sink.room = std::string::npos;
  s.sink.write_all(s.output);
  EXPECT_TRUE(s.output.empty());
  EXPECT_EQ(s.sink.text, s.expected);
  EXPECT_EQ(s.output.size(), 0U);
  s.pool.trim();
  s.sink.text = {};
  s.sink.text.shrink_to_fit();
  s.expected = {};
  s.expected.shrink_to_fit();
  EXPECT_LE(allocated_bytes(), before + 4096);
}

TEST(Output, ACallCanBeWithdrawnWhileMuchIsToBeWrittenBeforeIt) {
  Setting s;
  s.output.add_call(1, rpc::encode_request("1", "\"first\"", {}));
  EXPECT_TRUE(s.output.is_waiting(1));
  EXPECT_EQ(s.output.front(), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"first\"}\n");
  EXPECT_FALSE(s.output.is_waiting(1));
  EXPECT_FALSE(s.output.withdraw(1));
  s.output.clear();
  s.add(1, 100'000);
  s.output.add_call(2, rpc::encode_request("2", "\"second\"", {}));
  EXPECT_EQ(s.output.front().size(), s.expected.size());
  EXPECT_TRUE(s.output.is_waiting(2));
  s.add(3, 10);
  EXPECT_TRUE(s.output.withdraw(2));
  EXPECT_FALSE(s.output.withdraw(2));
  EXPECT_FALSE(s.output.withdraw(0));
  EXPECT_EQ(s.output.size(), s.expected.size());
  s.sink.write_all(s.output);
  EXPECT_EQ(s.sink.text, s.expected);
}

TEST(Output, WhatFollowsACallStaysBehindIt) {
  for (const std::size_t most : {1U, 1000U, 1'000'000U}) {
    Setting s;
    s.sink.most_at_once = most;
    s.add(1, 70'000);
    const std::string call = R"({"jsonrpc":"2.0","id":7,"method":"call","params":[1]})";
    s.output.add_call(7, rpc::encode_request("7", "\"call\"", "[1]"));
    s.expected += call + '\n';
    for (int i = 2; i < 30; ++i) s.add(i, 10'000);
    EXPECT_EQ(s.output.size(), s.expected.size());
    s.sink.write_all(s.output);
    EXPECT_EQ(s.sink.text, s.expected);
    EXPECT_FALSE(s.output.withdraw(7));
  }
}

// Counted in processor time: what is quadratic would take hundreds of times as long.
TEST(Output, WithdrawingManyCallsTakesAboutAsLongAsAddingThem) {
  Setting s;
  constexpr CallId count = 40'000;
  s.add(1, 100'000);
  s.output.front();
  const std::clock_t began = std::clock();
  for (CallId id = count + 1; id <= 2 * count; ++id) {
    s.output.add_call(id, rpc::encode_request("7", "\"call\"", "[1]"));
    s.add(2, 1);
  }
  const std::clock_t added = std::clock();
  CallId withdrawn = 0;
  for (CallId id = 1; id <= 2 * count; ++id) withdrawn += s.output.withdraw(id) ? 1 : 0;
  const std::clock_t done = std::clock();
  EXPECT_EQ(withdrawn, count);
  EXPECT_LT(done - added, 20 * (added - began + CLOCKS_PER_SEC / 1000));
  s.sink.write_all(s.output);
  EXPECT_EQ(s.sink.text, s.expected);
}

TEST(Output, ForgetsEverythingWhenItIsCleared) {
  Setting s;
  s.sink.room = 100;
  s.add(1, 300'000);
  s.add(2, 300'000);
  s.add(3, 10);
  s.sink.write_all(s.output);
  s.output.clear();
  EXPECT_TRUE(s.output.empty());
  s.sink.text.clear();
  s.expected.clear();
  s.sink.room = std::string::npos;
  s.add(4, 10);
  s.sink.write_all(s.output);
  EXPECT_EQ(s.sink.text, s.expected);
}

}  // namespace
}  // namespace duet::peer
