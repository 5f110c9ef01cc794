#include "app/words/near_miss.h"

#include <string>

#include <gtest/gtest.h>

namespace duet::app {
namespace {

const std::vector<std::string_view> words{"rpc", "version", "completion"};

TEST(NearMiss, FindsTheWordThatWasMeant) {
  for (const std::string_view wrong : {"versoin", "verison", "vresion", "ersion", "versionn", "VERSION", "versin"}) {
    EXPECT_EQ(near_miss(wrong, words), "version") << wrong;
  }
  EXPECT_EQ(near_miss("rcp", words), "rpc");
  EXPECT_EQ(near_miss("rpcs", words), "rpc");
}

TEST(NearMiss, LeavesAloneWhatIsFarAway) {
  for (const std::string_view wrong : {"xylophone", "frobnicate", "", "x", "abc", "-", "ver"}) {
    EXPECT_EQ(near_miss(wrong, words), "") << wrong;
  }
}

TEST(NearMiss, TakesTheNearest) { EXPECT_EQ(near_miss("warm", {"worn", "warn"}), "warn"); }

TEST(NearMiss, DoesNotLookAtEndlessWords) { EXPECT_EQ(near_miss(std::string(100'000, 'v'), words), ""); }

}  // namespace
}  // namespace duet::app
