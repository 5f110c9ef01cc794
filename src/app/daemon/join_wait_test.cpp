#include "app/daemon/join_wait.h"

#include <gtest/gtest.h>

namespace duet::app {
namespace {

using namespace std::chrono_literals;
using End = JoinWait::End;

constexpr base::TimePoint begin{100s};

TEST(JoinWait, ANewWorkerWaitsTwelveSecondsAndIsNotStarted) {
  JoinWait wait(begin, {});
  EXPECT_EQ(wait.look(begin, {}), std::nullopt);
  EXPECT_EQ(wait.until(), begin + 12s);
  EXPECT_EQ(wait.look(begin + 11s, {}), std::nullopt);
  EXPECT_EQ(wait.look(begin + 12s, {}), End::no_answer);
}

TEST(JoinWait, OneThatHasBeenItsWorkerGoesOnWithoutItAfterFiveSeconds) {
  JoinWait wait(begin, {.was_joined = true});
  EXPECT_EQ(wait.look(begin + 4s, {}), std::nullopt);
  EXPECT_EQ(wait.look(begin + 5s, {}), End::goes_on_without);
}

TEST(JoinWait, WhoHasJoinedWaitsNoMore) {
  JoinWait wait(begin, {});
  EXPECT_EQ(wait.look(begin, {.joined = true}), End::joined);
  EXPECT_EQ(wait.look(begin + 1h, {.joined = true}), End::joined) << "also if it took long";
}

TEST(JoinWait, AWorkerThatCannotBeWrittenDownIsNotStarted) {
  JoinWait wait(begin, {.was_joined = true});
  EXPECT_EQ(wait.look(begin, {.unwritten = true}), End::unwritten);
}

TEST(JoinWait, ARefusalByTheOnlyHostIsOneAtOnce) {
  JoinWait wait(begin, {});
  EXPECT_EQ(wait.look(begin + 1s, {.refused = true}), End::refused);
}

TEST(JoinWait, ARefusalIsOneAlsoForWhoHasBeenItsWorker) {
  JoinWait wait(begin, {.was_joined = true});
  EXPECT_EQ(wait.look(begin + 1s, {.refused = true}), End::refused) << "there is nothing to go on for";
}

TEST(JoinWait, AmongSeveralHostsAnotherOneIsLookedForBehindARefusal) {
  JoinWait wait(begin, {.has_several_hosts = true});
  EXPECT_EQ(wait.look(begin + 1s, {.refused = true}), std::nullopt);
  EXPECT_EQ(wait.until(), begin + 4s);
  EXPECT_EQ(wait.look(begin + 3s, {.refused = true}), std::nullopt);
  EXPECT_EQ(wait.look(begin + 4s, {.refused = true}), End::refused);
}

TEST(JoinWait, AHostThatDoesNotRefuseBeginsTheSearchAnew) {
  JoinWait wait(begin, {.has_several_hosts = true});
  EXPECT_EQ(wait.look(begin + 1s, {.refused = true}), std::nullopt);
  EXPECT_EQ(wait.look(begin + 2s, {}), std::nullopt);
  EXPECT_EQ(wait.until(), begin + 12s);
  EXPECT_EQ(wait.look(begin + 5s, {.refused = true}), std::nullopt);
  EXPECT_EQ(wait.look(begin + 8s, {.refused = true}), End::refused);
}

TEST(JoinWait, ASearchIsNoLongerThanTheWholeWait) {
  JoinWait wait(begin, {.was_joined = true, .has_several_hosts = true});
  EXPECT_EQ(wait.look(begin + 4s, {.refused = true}), std::nullopt);
  EXPECT_EQ(wait.look(begin + 5s, {.refused = true}), End::refused);
}

}  // namespace
}  // namespace duet::app
