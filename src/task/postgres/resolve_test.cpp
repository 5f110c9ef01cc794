#include "task/postgres/resolve.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace duet::task::postgres {
namespace {

TEST(PostgresResolve, WhatNeedsNoLookingUpIsTakenAsItIs) {
  const Resolved all = resolve({{"/tmp", "", "1"}, {"", "", "2"}, {"db1", "10.0.0.1", "3"}});
  const std::vector<Candidate> expected{{"/tmp", "", "1"}, {"", "", "2"}, {"db1", "10.0.0.1", "3"}};
  EXPECT_EQ(all.candidates, expected);
  EXPECT_EQ(all.error, "");
}

TEST(PostgresResolve, AnAddressIsItsOwnName) {
  const Resolved all = resolve({{"127.0.0.1", "", "1"}, {"::1", "", "2"}});
  const std::vector<Candidate> expected{{"127.0.0.1", "127.0.0.1", "1"}, {"::1", "::1", "2"}};
  EXPECT_EQ(all.candidates, expected);
}

TEST(PostgresResolve, LocalhostIsLoopback) {
  const Resolved all = resolve({{"localhost", "", "1"}});
  ASSERT_FALSE(all.candidates.empty()) << all.error;
  EXPECT_TRUE(std::all_of(all.candidates.begin(), all.candidates.end(),
                          [](const Candidate& candidate) { return is_loopback(candidate.address); }));
}

TEST(PostgresResolve, ANameWithoutAnAddressIsToldAndTheOthersStay) {
  const Resolved all = resolve({{"no-such-host.invalid", "", "1"}, {"127.0.0.1", "", "2"}});
  ASSERT_EQ(all.candidates.size(), 1U);
  EXPECT_NE(all.error.find("no-such-host.invalid"), std::string::npos) << all.error;
}

TEST(PostgresResolve, PeopleSeeNameAndAddress) {
  EXPECT_EQ((Candidate{"db1", "10.0.0.1", "5432"}).text(), "db1:5432 (10.0.0.1)");
  EXPECT_EQ((Candidate{"10.0.0.1", "10.0.0.1", "5432"}).text(), "10.0.0.1:5432");
  EXPECT_EQ((Candidate{"/tmp", "", "5432"}).text(), "/tmp:5432");
}

}  // namespace
}  // namespace duet::task::postgres
