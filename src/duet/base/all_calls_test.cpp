#include "duet/base/all_calls.h"

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

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

TEST(AllCallsTest, EachOfSeveralFunctionsIsCalled) {
  std::string made;
  const std::vector<std::function<void(char)>> functions{
      [&](char c) { made += c; }, [](char) { throw std::runtime_error("a fault"); }, [&](char c) { made += c; }};
  EXPECT_THROW(call_all(functions, 'x'), std::runtime_error);
  EXPECT_EQ(made, "xx");
}

TEST(AllCallsTest, WithoutAFaultNothingIsThrown) {
  AllCalls calls;
  calls.make([] {});
  EXPECT_NO_THROW(calls.check());
}

}  // namespace
}  // namespace duet::base
