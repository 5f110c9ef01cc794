#include "task/failure_text.h"

#include <gtest/gtest.h>

namespace duet::task {
namespace {

TEST(FailureTextTest, WhateverANameOfAProgramIsItsTextCanBeStored) {
  using namespace std::string_literals;
  const auto said = [](const std::string& problem) {
    return failure_of({.kind = Outcome::Kind::not_started, .problem = problem}).message;
  };
  EXPECT_EQ(said("run: no such file"), "run: no such file");
  EXPECT_EQ(said("r\xc3"), "r\xef\xbf\xbd") << "cut inside of a character";
  EXPECT_EQ(said("a\0b"s), "a b");
}

}  // namespace
}  // namespace duet::task
