#include "duet/base/unique_function.h"

#include <array>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace duet::base {
namespace {

TEST(UniqueFunction, CallsWhatItHoldsWithArgumentsAndResult) {
  UniqueFunction<std::string(int, std::string&&)> repeat = [](int times, std::string&& text) {
    std::string all;
    for (; times > 0; --times) all += text;
    return all;
  };
  EXPECT_EQ(repeat(3, "ab"), "ababab");
}

TEST(UniqueFunction, HoldsWhatCannotBeCopied) {
  UniqueFunction<int()> get = [value = std::make_unique<int>(7)] { return *value; };
  UniqueFunction<int()> moved = std::move(get);
  EXPECT_EQ(moved(), 7);
  EXPECT_FALSE(get);  // NOLINT(bugprone-use-after-move)
}

TEST(UniqueFunction, KeepsItsState) {
  UniqueFunction<int()> count = [n = 0]() mutable { return ++n; };
  count();
  EXPECT_EQ(count(), 2);
}

TEST(UniqueFunction, AnEmptyOneSaysSo) {
  UniqueFunction<void()> empty;
  EXPECT_FALSE(empty);
  EXPECT_THROW(empty(), std::bad_function_call);
  UniqueFunction<void()> null = nullptr;
  EXPECT_FALSE(null);
}

/// Counts how many of it there are.
struct Counted {
  explicit Counted(int& there) : count(&there) { ++*count; }
  Counted(const Counted& other) : count(other.count) { ++*count; }
  Counted(Counted&& other) noexcept : count(other.count) { ++*count; }
  Counted& operator=(const Counted&) = delete;
  Counted& operator=(Counted&&) = delete;
  ~Counted() { --*count; }
  int* count;
};

template <std::size_t Size>
void expect_no_leak() {
  int there = 0;
  {
    UniqueFunction<void()> one = [counted = Counted(there), more = std::array<char, Size>()] { (void)more; };
    EXPECT_EQ(there, 1);
    UniqueFunction<void()> two = std::move(one);
    EXPECT_EQ(there, 1);
    one = std::move(two);
    one = [] {};
    EXPECT_EQ(there, 0);
    one = [counted = Counted(there), more = std::array<char, Size>()] { (void)more; };
  }
  EXPECT_EQ(there, 0);
}

TEST(UniqueFunction, DestroysWhatItHoldsOnce) {
  expect_no_leak<1>();    // held inside
  expect_no_leak<100>();  // held outside
}

TEST(UniqueFunction, IsNoLargerThanAStdFunction) {
  EXPECT_LE(sizeof(UniqueFunction<void()>), sizeof(std::function<void()>));
}

struct Named {
  void operator()() const {}
};

TEST(UniqueFunction, TellsTheTypeOfWhatItCallsThroughAStdFunction) {
  EXPECT_EQ(UniqueFunction<void()>(Named()).target_type(), typeid(Named));
  EXPECT_EQ(UniqueFunction<void()>(std::function<void()>(Named())).target_type(), typeid(Named));
  EXPECT_EQ(UniqueFunction<void()>().target_type(), typeid(void));
}

}  // namespace
}  // namespace duet::base
