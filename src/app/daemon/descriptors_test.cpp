#include "app/daemon/descriptors.h"

#include <limits>

#include <gtest/gtest.h>

#include "app/project/failure.h"

namespace duet::app {
namespace {

TEST(DescriptorBudget, TooFewAreRefusedWithTheNumberThatIsNeeded) {
  try {
    DescriptorBudget::of(20);
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(),
                 "too few descriptors: this process may have 20, and a daemon needs 64; raise the limit ('ulimit -n')");
  }
  EXPECT_THROW(DescriptorBudget::of(63), Failure);
}

TEST(DescriptorBudget, LeavesEnoughForTheDaemonItself) {
  for (const std::size_t limit : {64U, 65U, 100U, 1024U, 20000U, 1048576U}) {
    const DescriptorBudget budget = DescriptorBudget::of(limit);
    EXPECT_GE(budget.clients, 10U) << limit;
    EXPECT_GE(budget.tasks, 3U) << limit;
    EXPECT_LE(budget.clients + 3 * budget.tasks + 40, limit) << limit;
    EXPECT_GE(budget.tls, 2U) << limit;
    EXPECT_GE(budget.http, budget.clients / 2) << limit;
    EXPECT_LT(budget.http + budget.tls, budget.clients) << limit << ": some are for the Unix socket";
  }
}

TEST(DescriptorBudget, TwentyThousandAreEnoughForTenThousandBrowsers) {
  EXPECT_GE(DescriptorBudget::of(20'000).http, 10'000U);
}

TEST(DescriptorBudget, NoLimitIsNoTrouble) {
  const DescriptorBudget budget = DescriptorBudget::of(std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(budget.clients, 65536U);
}

}  // namespace
}  // namespace duet::app
