#include "simulate/output_truth.h"

#include <gtest/gtest.h>

namespace duet::simulate {
namespace {

using task::OutputPiece;
using task::OutputRange;
using task::RunId;

constexpr RunId first{7, 1};
constexpr RunId second{7, 2};

OutputPiece whole(const std::string& bytes) { return {.bytes = bytes, .next = bytes.size(), .total = bytes.size()}; }

class OutputTruthTest : public testing::Test {
 protected:
  OutputTruthTest() {
    truth.began(first);
    truth.took(first, "one\n", false);
    truth.began(second);
    truth.took(second, "two\n", false);
  }
  bool is_right(const OutputPiece& piece, bool done = true) const { return !truth.check(7, 2, piece, done); }

  OutputTruth truth;
};

TEST_F(OutputTruthTest, TheOutputsOfTheAttemptsFollowEachOther) {
  EXPECT_TRUE(is_right(whole("one\ntwo\n")));
  EXPECT_TRUE(is_right({.offset = 3, .bytes = "\nt", .next = 5, .total = 8}));
  EXPECT_FALSE(is_right(whole("one\nTwo\n")));
  EXPECT_FALSE(is_right(whole("one\ntwo\nthree\n")));
}

TEST_F(OutputTruthTest, OnlyWhatIsDoneMustBeWhole) {
  EXPECT_TRUE(is_right(whole("one\n"), false));
  EXPECT_FALSE(is_right(whole("one\n")));
}

TEST_F(OutputTruthTest, AGapIsForWhatTheDiskMayHaveRefused) {
  OutputPiece gap = {.offset = 8, .next = 8, .total = 8, .dropped = OutputRange{4, 8}};
  EXPECT_FALSE(is_right(gap));
  truth.took(second, "", true);
  EXPECT_TRUE(is_right(gap));
}

TEST_F(OutputTruthTest, APowerCutTakesOnlyWhatNobodyWasToldOf) {
  truth.power_cut(first, true);
  EXPECT_TRUE(truth.check_run(first, {whole(""), {}}).has_value());
  truth.power_cut(second, false);
  EXPECT_FALSE(truth.check_run(second, {whole(""), {}}).has_value());
}

TEST_F(OutputTruthTest, WhatCouldNotBeSyncedMayGoWithThePower) {
  truth.sync_failed(first);
  EXPECT_TRUE(truth.check_run(first, {whole(""), {}}).has_value());
  truth.power_cut(first, true);
  EXPECT_FALSE(truth.check_run(first, {whole(""), {}}).has_value());
}

}  // namespace
}  // namespace duet::simulate
