#include "duet/peer/answer.h"

#include <string>
#include <string_view>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <gtest/gtest.h>

namespace duet::peer {
namespace {

std::string text_of(const Answer& answer) { return std::string(answer.text()); }

TEST(Answer, IsMadeFromWhateverAValueIsMadeFrom) {
  EXPECT_EQ(text_of(nullptr), "null");
  EXPECT_EQ(text_of(true), "true");
  EXPECT_EQ(text_of(5), "5");
  EXPECT_EQ(text_of(2.5), "2.5");
  EXPECT_EQ(text_of("text"), R"("text")");
  EXPECT_EQ(text_of(std::string("text")), R"("text")");
  EXPECT_EQ(text_of(std::string_view("text")), R"("text")");
  EXPECT_EQ(text_of(boost::json::array{1, "two"}), R"([1,"two"])");
  EXPECT_EQ(text_of(boost::json::object{{"a", 1}}), R"({"a":1})");
  const boost::json::value value{{"a", {1, 2}}};
  EXPECT_EQ(text_of(value), R"({"a":[1,2]})");
  EXPECT_EQ(text_of({{"pong", true}}), R"({"pong":true})");
  EXPECT_EQ(text_of({{"pong", true}, {"count", 2}, {"text", "x"}}), R"({"pong":true,"count":2,"text":"x"})");
}

TEST(Answer, RawTextIsTakenAsItIs) {
  EXPECT_EQ(text_of(Answer::raw(R"({ "as" : "it is" })")), R"({ "as" : "it is" })");
  const std::string kept = "[ 1 ]";
  EXPECT_EQ(Answer::view(kept).text().data(), kept.data());
}

TEST(Answer, MovesWithItsText) {
  for (const std::size_t size : {3U, 300U}) {  // a short text lies inside its string
    Answer first = Answer::raw('"' + std::string(size, 'x') + '"');
    const Answer second = std::move(first);
    EXPECT_EQ(second.text(), '"' + std::string(size, 'x') + '"');
  }
  const std::string kept = "true";
  Answer view = Answer::view(kept);
  const Answer moved = std::move(view);
  EXPECT_EQ(moved.text().data(), kept.data());
}

}  // namespace
}  // namespace duet::peer
