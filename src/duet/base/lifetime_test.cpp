#include "duet/base/lifetime.h"

#include <functional>
#include <memory>
#include <optional>

#include <gtest/gtest.h>

namespace duet::base {
namespace {

TEST(Lifetime, ACallIsMadeWhileItsOwnerIsThere) {
  std::optional<Lifetime> owner(std::in_place);
  int sum = 0;
  std::function<void(int, int)> add = owner->bind([&](int a, int b) { sum += a + b; });
  add(1, 2);
  EXPECT_EQ(sum, 3);
  owner.reset();
  add(3, 4);
  EXPECT_EQ(sum, 3);
}

TEST(Lifetime, WhatIsBoundMayBeUnableToBeCopied) {
  const Lifetime owner;
  int got = 0;
  auto call = owner.bind([&, value = std::make_unique<int>(7)] { got = *value; });
  call();
  EXPECT_EQ(got, 7);
}

TEST(Lifetime, ACallMayEndIt) {
  std::optional<Lifetime> owner(std::in_place);
  int calls = 0;
  auto end = owner->bind([&] {
    ++calls;
    owner.reset();
  });
  end();
  end();
  EXPECT_EQ(calls, 1);
}

TEST(Lifetime, IsWatched) {
  std::optional<Lifetime> owner(std::in_place);
  const auto is_there = owner->watch();
  EXPECT_TRUE(is_there());
  owner.reset();
  EXPECT_FALSE(is_there());
}

}  // namespace
}  // namespace duet::base
