#include "app/words/bytes.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

TEST(Bytes, AreReadInPowersOf1024) {
  EXPECT_EQ(parse_bytes("0"), 0U);
  EXPECT_EQ(parse_bytes("4096"), 4096U);
  EXPECT_EQ(parse_bytes("3K"), 3072U);
  EXPECT_EQ(parse_bytes("512MiB"), std::uint64_t{512} << 20U);
  EXPECT_EQ(parse_bytes("2G"), std::uint64_t{2} << 30U);
  for (const char* wrong : {"", "G", "-1", "1.5G", "2T", "2 G", "2g", "99999999999G", "18446744073709551616"}) {
    EXPECT_EQ(parse_bytes(wrong), std::nullopt) << wrong;
  }
}

TEST(Bytes, AreShownInTheUnitThatSuits) {
  EXPECT_EQ(readable_bytes(0), "0 B");
  EXPECT_EQ(readable_bytes(1023), "1023 B");
  EXPECT_EQ(readable_bytes(1024), "1.0 KiB");
  EXPECT_EQ(readable_bytes(3500), "3.4 KiB");
  EXPECT_EQ(readable_bytes(std::uint64_t{210} << 20U), "210 MiB");
  EXPECT_EQ(readable_bytes((std::uint64_t{1} << 20U) - 1), "1.0 MiB");
  EXPECT_EQ(readable_bytes(std::uint64_t{2} << 30U), "2.0 GiB");
}

}  // namespace
}  // namespace duet::app
