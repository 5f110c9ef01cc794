#include "task/lease_watch.h"

#include <fcntl.h>
#include <poll.h>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"

namespace duet::task {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class LeaseWatchTest : public testing::Test {
 protected:
  bool wakes(int patience_ms) const {
    pollfd ready{.fd = watch_.timer(), .events = POLLIN, .revents = 0};
    return poll(&ready, 1, patience_ms) == 1;
  }

  transport::TemporaryFolder folder_;
  base::Fd tasks_{open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  Lease lease_{tasks_.get()};
  LeaseWatch watch_{tasks_.get()};
};

TEST_F(LeaseWatchTest, WithoutALeaseNothingIsLeftAndNothingToWaitFor) {
  EXPECT_LT(watch_.left().until_end.count(), 0);
  EXPECT_LT(watch_.left().until_over.count(), 0);
  EXPECT_FALSE(wakes(0));
}

TEST_F(LeaseWatchTest, TellsWhatIsLeft) {
  lease_.extend(BootClock::now() + hours(3), hours(3));
  const LeaseLeft left = watch_.left();
  EXPECT_LE(left.until_end, hours(2));
  EXPECT_GT(left.until_end, hours(1));
  EXPECT_EQ(left.until_over - left.until_end, hours(1));
}

TEST_F(LeaseWatchTest, WakesAtTheEndThatItKnowsAndGoesOnIfThatHasMoved) {
  lease_.extend(BootClock::now() + milliseconds(150), milliseconds(300));
  watch_.left();
  lease_.extend(BootClock::now() + hours(3), hours(3));
  EXPECT_TRUE(wakes(60'000));
  EXPECT_GT(watch_.left().until_end, hours(1));
  EXPECT_FALSE(wakes(0));
}

TEST_F(LeaseWatchTest, WakesAtTheEndAndWhenAllIsOverAndThenNoMore) {
  const BootTime deadline = BootClock::now() + milliseconds(300);
  lease_.extend(deadline, milliseconds(300));
  watch_.left();
  while (BootClock::now() < deadline) {
    EXPECT_TRUE(wakes(60'000));
    watch_.left();
  }
  EXPECT_LE(watch_.left().until_over.count(), 0);
  EXPECT_FALSE(wakes(0)) << "or the keeper would spin";
}

TEST_F(LeaseWatchTest, AnEndThatComesNearerIsWaitedForOnceItIsSeen) {
  lease_.extend(BootClock::now() + hours(3), hours(3));
  watch_.left();
  lease_.extend(BootClock::now() + milliseconds(150), milliseconds(300));
  watch_.left();
  EXPECT_TRUE(wakes(60'000));
}

}  // namespace
}  // namespace duet::task
