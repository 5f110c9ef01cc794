#include "duet/rpc/object_text.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "duet/rpc/json_scan.h"

namespace duet::rpc {
namespace {

TEST(ObjectText, OfNoMembersIsAnEmptyObject) { EXPECT_EQ(ObjectText().take(), "{}"); }

TEST(ObjectText, WritesMembersInTheirOrder) {
  ObjectText object;
  object.add("name", "a \"b\"\n").add("number", 7).add_json("list", "[1,2]");
  EXPECT_EQ(object.take(), R"({"name":"a \"b\"\n","number":7,"list":[1,2]})");
}

TEST(ObjectText, GoesOnWithAnotherObject) {
  EXPECT_EQ(ObjectText("{}").add("seq", 1).take(), R"({"seq":1})");
  EXPECT_EQ(ObjectText(R"({"a":{}})").add("seq", 2U).take(), R"({"a":{},"seq":2})");
}

TEST(ObjectText, WritesTheLargestAndTheSmallestNumber) {
  ObjectText object;
  object.add("most", std::numeric_limits<std::uint64_t>::max()).add("least", std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(object.take(), R"({"most":18446744073709551615,"least":-9223372036854775808})");
}

TEST(ObjectText, IsValidWhateverTheTextIs) {
  const std::string text = ObjectText().add("t", "\xFF\xC3 \x01 \xE2\x82\xAC").take();
  EXPECT_TRUE(is_valid_json(text)) << text;
}

}  // namespace
}  // namespace duet::rpc
