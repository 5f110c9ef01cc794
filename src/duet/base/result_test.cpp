#include "duet/base/result.h"

#include <memory>
#include <stdexcept>

#include <gtest/gtest.h>

namespace duet::base {
namespace {

template <typename Function>
auto result_of(Function function) {
  return Result<decltype(function())>::of(function);
}

TEST(Result, HasWhatWasReturned) {
  auto result = result_of([] { return std::make_unique<int>(7); });
  EXPECT_TRUE(result.has_value());
  EXPECT_FALSE(result.exception());
  EXPECT_EQ(*result.get(), 7);
}

TEST(Result, ThrowsWhatWasThrown) {
  auto result = result_of([]() -> int { throw std::out_of_range("far"); });
  EXPECT_FALSE(result.has_value());
  EXPECT_TRUE(result.exception());
  EXPECT_THROW(result.get(), std::out_of_range);
}

TEST(Result, OfNothingIsThatItWasDone) {
  EXPECT_NO_THROW(result_of([] {}).get());
  EXPECT_THROW(result_of([] { throw std::runtime_error("oops"); }).get(), std::runtime_error);
}

TEST(Result, AnExceptionMayBeAValue) {
  auto result = result_of([] { return std::make_exception_ptr(1); });
  EXPECT_TRUE(result.has_value());
}

}  // namespace
}  // namespace duet::base
