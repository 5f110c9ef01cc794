#include "duet/base/all_calls.h"

#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace duet::base {
namespace {

TEST(AllCallsTest, TheOthersAreMadeAndTheFirstFaultIsThrown) {
  std::string made;
  AllCalls calls;
  calls.make([&] { made += 'a'; });
  calls.make([&] { throw std::runtime_error("first"); });
  calls.make([&] { made += 'b'; });
  calls.make([&] { throw std::runtime_error("second"); });
  EXPECT_EQ(made, "ab");
  try {
    calls.check();
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& fault) {
    EXPECT_STREQ(fault.what(), "first");
  }
}

TEST(AllCallsTest, WithoutAFaultNothingIsThrown) {
  AllCalls calls;
  calls.make([] {});
  EXPECT_NO_THROW(calls.check());
}

}  // namespace
}  // namespace duet::base
