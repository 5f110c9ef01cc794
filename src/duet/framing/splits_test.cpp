// However the bytes of a stream arrive, the same comes of it, and it is what the rules say.

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "duet/framing/content_length.h"
#include "duet/framing/slow_reader_test.h"
#include "duet/framing/stream_driver_test.h"

namespace duet::framing {
namespace {

using Events = std::vector<std::string>;

std::string framed(const std::string& body) {
  return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

const std::string one = framed(R"({"id":1})");
const std::string two = framed(R"({"id":2,"text":"Content-Length: 5\r\n\r\n"})");

std::vector<std::string> streams() {
  const std::string type = "Content-Type: application/json\r\n";
  return {
      one + two + one,
      "X-A: 1\r\n" + one + "content-type: application/vscode-jsonrpc; charset=utf8\r\n" + two,
      type + one + two,
      "Content-Type: application/vscode-jsonrpc; charset=latin1\r\n" + one + two,
      type + framed("nope") + two,
      type + "Content-Length: 50\r\n\r\n{}" + two + one,
      "Content-Length: x\r\n\r\n{}" + two,
      "Content-Length: 8\r\nContent-Length: 9\r\n\r\n{\"id\":1} " + two,
      "X: y\r\n\r\n{}" + two,
      "Content-Length: 8\n\n{}" + two,
      framed("") + two,
      framed("{nope}") + "junk" + two,
      "Content-Length: 3\r\n\r\n{\"id\":1}" + two,
      "Content-Length: 15\r\n\r\n{\"id\":1}" + two + one,
      "Content-Length: 100\r\n\r\n{\"id\":1}" + two + one,
      "Content-Length: 99999999999\r\n\r\nX: y\r\n" + two,
      "Content-Length: 99999999999999999999999\r\n\r\n" + two + one,
      one + "junk" + two + "\r\n" + one + "\r\n\r\n" + two,
      "Content-Length: 8\r\n{\"id\":1}" + two,
      "junk!\r\nContent-Length: 3\r\n\r\nabc" + two,
      one + two.substr(0, two.size() - 1),
      one + two.substr(0, 12),
      one + "{\"no\":\"header\"}",
      "\r\n\r\n\r\n\r\n" + one,
      "\r\r\n\n\r\n\r" + one,
      "ContentContent-Length: 4Content-Length: 8\r\n\r\n{\"id\":1}",
      type + "Content-Length: 51\r\n\r\n{}Content-Length: 64\r\nContent-Length: 99999999\r\n\r\n: 5\"}" + one,
      R"(C}"1{"a":"Content-Type: a/b"}t-Length: nC)"
      "\r"
      R"(W/b:")"
      "\r\nContent-Length: 1\r\n\r\n{ }{",
  };
}

std::vector<std::string> long_streams() {
  const std::string padding = "X: " + std::string(8300, 'x') + "\r\n";
  std::string many;
  while (many.size() < 8500) many += "X-Many: yes\r\n";
  return {
      padding + one + two,
      many + one + two,
      "Content-Length: 8\r\n" + many + "\r\n{\"id\":1}" + two,
      many + "broken\r\n" + two,
      std::string(8200, 'x') + two,
      std::string(8200, 'x') + ": y\r\n" + one + two,
      std::string(8200, 'x') + "\r\n" + one + two,
      std::string(8200, 'x') + " y\r\n" + one + two,
      "Content-Length:" + std::string(8200, ' ') + "8\r\n" + one + two,
      "! " + std::string(8300, 'x') + two,
      "Content-Length: 3\r\n\r\n" + std::string(8300, 'y') + two,
  };
}

void expect_same_in_two_pieces(const std::string& stream, std::size_t from) {
  const Events whole = events_of<ContentLengthDecoder>(stream);
  EXPECT_EQ(SlowReader(stream, is_json).events(), whole) << stream.substr(0, 200);
  for (std::size_t at = from; at <= stream.size(); ++at) {
    for (const bool into_room : {false, true}) {
      ContentLengthDecoder decoder;
      StreamDriver driver(decoder);
      driver.feed(stream.substr(0, at));
      into_room ? driver.read(stream.substr(at)) : driver.feed(stream.substr(at));
      driver.finish();
      ASSERT_EQ(driver.events(), whole) << "split at " << at << " of " << stream.substr(0, 200);
    }
  }
}

TEST(Splits, InTwoPiecesAtEveryPointGiveTheSame) {
  for (const std::string& stream : streams()) expect_same_in_two_pieces(stream, 0);
}

TEST(Splits, InTwoPiecesAroundTheHeaderLimitGiveTheSame) {
  for (const std::string& stream : long_streams()) expect_same_in_two_pieces(stream, 8000);
}

TEST(Splits, ByteByByteGivesTheSame) {
  std::vector<std::string> all = streams();
  for (const std::string& stream : long_streams()) all.push_back(stream);
  for (const std::string& stream : all) {
    const Events whole = events_of<ContentLengthDecoder>(stream);
    EXPECT_EQ(events_of<ContentLengthDecoder>(stream, Arrival::byte_by_byte), whole) << stream.substr(0, 200);
    EXPECT_EQ(events_of<ContentLengthDecoder>(stream, Arrival::byte_by_byte_into_room), whole) << stream.substr(0, 200);
  }
}

TEST(Splits, RandomPortionsOfMixturesGiveTheSame) {
  std::mt19937 random(2);
  const std::vector<std::string> parts = streams();
  for (int round = 0; round < 300; ++round) {
    std::string stream;
    for (auto i = 1 + random() % 8; i > 0; --i) stream += parts[random() % parts.size()];
    const Events whole = events_of<ContentLengthDecoder>(stream);
    ASSERT_EQ(SlowReader(stream, is_json).events(), whole) << stream;
    for (const std::size_t largest : {2U, 7U, 40U, 1000U}) {
      ASSERT_EQ(events_of_portions<ContentLengthDecoder>(stream, random, largest), whole) << stream;
    }
  }
}

// EncodedMessage of headers and bodies in any order: mostly nonsense, on which the rules have an opinion too.
TEST(Splits, AnyMixtureOfPiecesIsReadByTheRulesHoweverItArrives) {
  const std::vector<std::string> pieces = {"Content-Length: ",
                                           "content-length:",
                                           "Content-Type: ",
                                           "application/vscode-jsonrpc",
                                           "Content-",
                                           "X: y",
                                           "X: y\r\n",
                                           "Content-Length: 2",
                                           "Content-Length: 8\r\n",
                                           "2",
                                           "8",
                                           "30",
                                           "99999999",
                                           "\r\n",
                                           "\r\n",
                                           "\r\n\r\n",
                                           "\r\n\r\n",
                                           "\r",
                                           "\n",
                                           ":",
                                           " ",
                                           "{}",
                                           "{\"id\":1}",
                                           "{",
                                           "}",
                                           "\"",
                                           "junk",
                                           "!",
                                           one,
                                           two,
                                           std::string(50, '9'),
                                           std::string(300, 'x')};
  std::mt19937 random(3);
  for (int round = 0; round < 6000; ++round) {
    std::string stream;
    for (auto i = 1 + random() % 25; i > 0; --i) stream += pieces[random() % pieces.size()];
    if (round % 20 == 0)
      stream.insert(random() % (stream.size() + 1), std::string(7000 + random() % 2500, random() % 2 == 0 ? 'x' : ' '));
    const Events whole = events_of<ContentLengthDecoder>(stream);
    ASSERT_EQ(SlowReader(stream, is_json).events(), whole) << testing::PrintToString(stream);
    ASSERT_EQ(events_of<ContentLengthDecoder>(stream, Arrival::byte_by_byte), whole) << testing::PrintToString(stream);
    ASSERT_EQ(events_of_portions<ContentLengthDecoder>(stream, random, 1 + random() % 60), whole)
        << testing::PrintToString(stream);
  }
}

}  // namespace
}  // namespace duet::framing
