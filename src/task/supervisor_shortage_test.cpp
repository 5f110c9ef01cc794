#include <chrono>

#include "task/supervisor_fixture_test.h"

// What keeps tasks from starting though nothing else does, and of which tasks it is told.

namespace duet::task {
namespace {

using namespace std::chrono_literals;
using Reasons = std::vector<Why>;

/// A supervisor whose limits can be kept, or not.
class ShortageTest : public SupervisorTest {
 protected:
  ShortageTest() {
    provide_for = [this](const process::Limits&) -> tl::expected<void, std::string> {
      if (can_limit) return {};
      return tl::unexpected(std::string("no cgroup"));
    };
  }

  std::int64_t submit_limited() { return submit({.prompt = "p", .limits = {.memory = 1 << 30}}); }
  void hold(TaskId id) {
    supervisor->set_held(id, true, [](const tl::expected<bool, rpc::Error>& changed) { EXPECT_TRUE(changed); });
    wait_for_store();
  }
  Reasons why(TaskId id) {
    Reasons reasons;
    const auto explanation = supervisor->explain(id);
    for (const WaitReason& reason : explanation->reasons) reasons.push_back(reason.why);
    return reasons;
  }
  const std::optional<Shortages::Shortage>& of_machine() const { return supervisor->shortages().of_machine(); }
  std::string text() const { return supervisor->shortages().text(); }

  bool can_limit = true;
};

TEST_F(ShortageTest, WhatKeepsTasksFromStartingIsKnownUntilOneStarts) {
  submit();
  EXPECT_FALSE(of_machine());
  const base::UtcTime first = loop.clock().utc();
  tell.never_began({1, 1}, "no processes");
  advance(1s);
  tell.never_began({1, 1}, "no memory");
  ASSERT_TRUE(of_machine());
  EXPECT_EQ(of_machine()->what, "no memory");
  EXPECT_EQ(of_machine()->since, first);
  EXPECT_EQ(why(1), (Reasons{Why::retry, Why::shortage}));
  advance(1s);
  tell.started({1, 1}, {.pid = 7, .at = loop.clock().utc()});
  EXPECT_FALSE(of_machine());
}

TEST_F(ShortageTest, OneIsOverWhenTheTaskThatMetItIsCancelledOrHeldThoughOthersWait) {
  submit({.prompt = "x", .delay = 24h});
  submit();
  tell.never_began({2, 1}, "no processes");
  ASSERT_TRUE(of_machine());
  EXPECT_EQ(*cancel(2), 1);
  EXPECT_FALSE(of_machine());
  submit();
  tell.never_began({3, 1}, "no processes");
  hold(3);
  ASSERT_TRUE(of_machine());
  advance(1s);
  EXPECT_FALSE(of_machine()) << "it is not tried any more";
  EXPECT_EQ(why(1), Reasons{Why::not_before});
}

TEST_F(ShortageTest, OneIsOverWhenTheTaskThatMetItWasCancelledWhileItWasBeingStarted) {
  submit({.prompt = "x", .delay = 24h});
  submit();
  supervisor->cancel(2, [](const tl::expected<void, rpc::Error>&) {});
  tell.never_began({2, 1}, "no processes");
  wait_for_store();
  EXPECT_EQ(state(2), State::cancelled);
  EXPECT_FALSE(of_machine());
}

TEST_F(ShortageTest, LimitsThatCannotBeKeptAreRefused) {
  can_limit = false;
  EXPECT_EQ(submit_limited(), -32003);
  settings.agents["cat"].limits.cpu = 1;
  supervisor->change_settings(settings);
  EXPECT_EQ(submit({.prompt = "p", .agent = "cat"}), -32003);
  EXPECT_EQ(submit({.prompt = "p"}), 1);
}

TEST_F(ShortageTest, ATaskWhoseLimitsCannotBeKeptAnyMoreWaits) {
  settings.max_running = 1;
  begin();
  submit();
  submit_limited();
  can_limit = false;
  run_exits({1, 1}, 0);
  EXPECT_EQ(started(), (Strings{"1.1"}));
  EXPECT_EQ(text(), "task-2 waits, since 2027-01-15T08:00:00.000Z: limits cannot be kept: no cgroup");
  EXPECT_EQ(why(2), Reasons{Why::limits});
  can_limit = true;
  advance(10s);
  EXPECT_EQ(started(), (Strings{"1.1", "2.1"}));
  EXPECT_EQ(runner.started.at(1).limits.memory, 1U << 30U);
  EXPECT_EQ(text(), "");
}

TEST_F(ShortageTest, LimitsOfOneTaskAreToldOfNoOtherAndWhateverElseStarts) {
  settings.max_running = 1;
  begin();
  for (int i = 0; i < 2; ++i) submit();
  submit_limited();
  submit();
  can_limit = false;
  run_exits({1, 1}, 0);
  run_exits({2, 1}, 0);
  run_started({4, 1});
  EXPECT_EQ(started(), (Strings{"1.1", "2.1", "4.1"}));
  submit();
  EXPECT_EQ(why(5), Reasons{Why::slot});
  EXPECT_EQ(why(3), (Reasons{Why::limits, Why::slot}));
  EXPECT_FALSE(of_machine());
  EXPECT_NE(text().find("task-3 waits"), std::string::npos) << text();
  advance(10s);
  EXPECT_EQ(why(3), (Reasons{Why::limits, Why::slot})) << "its time has come, but a slot is not all that it waits for";
}

TEST_F(ShortageTest, LimitsAreToldUntilTheirTaskIsCancelledThoughOthersWait) {
  settings.max_running = 1;
  begin();
  submit();
  submit({.prompt = "x", .delay = 24h});
  submit_limited();
  can_limit = false;
  run_exits({1, 1}, 0);
  EXPECT_EQ(why(3), Reasons{Why::limits});
  EXPECT_EQ(*cancel(3), 1);
  EXPECT_EQ(text(), "");
  EXPECT_EQ(why(2), Reasons{Why::not_before});
}

}  // namespace
}  // namespace duet::task
