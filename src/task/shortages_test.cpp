#include "task/shortages.h"

#include <chrono>

#include <gtest/gtest.h>

namespace duet::task {
namespace {

using namespace std::chrono_literals;

class ShortagesTest : public testing::Test {
 protected:
  base::VirtualClock clock{base::UtcTime(std::chrono::seconds(1'800'000'000))};
  Shortages shortages{clock};
};

TEST_F(ShortagesTest, WithoutAnyThereIsNothingToSay) {
  EXPECT_FALSE(shortages.of_machine());
  EXPECT_EQ(shortages.of_limits(1), nullptr);
  EXPECT_EQ(shortages.text(), "");
}

TEST_F(ShortagesTest, TheMachinesIsKnownSinceItWasFirstMetUntilSomethingStarts) {
  shortages.met_by(1, "no processes");
  clock.advance(1s);
  shortages.met_by(2, "no memory");
  EXPECT_EQ(shortages.text(),
            "tasks cannot be started, since 2027-01-15T08:00:00.000Z: no memory. It is tried again and again");
  shortages.one_has_started();
  EXPECT_EQ(shortages.text(), "");
  shortages.met_by(3, "no memory");
  shortages.forget(3);
  EXPECT_FALSE(shortages.of_machine()) << "those before the start count no more";
}

TEST_F(ShortagesTest, TheMachinesIsOverWhenNoneThatMetItIsTriedAnyMore) {
  for (const TaskId id : {1U, 2U, 3U}) shortages.met_by(id, "no processes");
  shortages.forget(1);
  shortages.not_tried(2);
  shortages.not_tried(7);
  EXPECT_TRUE(shortages.of_machine());
  shortages.not_tried(3);
  EXPECT_FALSE(shortages.of_machine());
}

TEST_F(ShortagesTest, LimitsAreOfTheirTaskUntilTheyCanBeKeptOrItIsGone) {
  shortages.set_limits(5, "no cgroup");
  clock.advance(10s);
  shortages.set_limits(5, "no controller");
  shortages.set_limits(4, "no cgroup");
  shortages.one_has_started();
  shortages.not_tried(5);
  EXPECT_FALSE(shortages.of_machine());
  ASSERT_NE(shortages.of_limits(5), nullptr);
  EXPECT_EQ(shortages.of_limits(5)->what, "no controller");
  EXPECT_EQ(shortages.of_limits(6), nullptr);
  EXPECT_EQ(shortages.text(),
            "task-4 and 1 more wait, since 2027-01-15T08:00:00.000Z: limits cannot be kept: no cgroup");
  shortages.set_limits(4, {});
  EXPECT_EQ(shortages.text(), "task-5 waits, since 2027-01-15T08:00:00.000Z: limits cannot be kept: no controller");
  shortages.forget(5);
  EXPECT_EQ(shortages.text(), "");
}

TEST_F(ShortagesTest, BothAreTold) {
  shortages.met_by(1, "no processes");
  shortages.set_limits(2, "no cgroup");
  EXPECT_NE(shortages.text().find("again and again; task-2 waits"), std::string::npos) << shortages.text();
}

}  // namespace
}  // namespace duet::task
