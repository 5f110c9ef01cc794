#include "task/lease_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"

namespace duet::task {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr BootTime now{hours(5)};

class LeaseFileTest : public testing::Test {
 protected:
  std::string path() const { return folder_.file("lease"); }
  void flip(off_t place) const {
    const base::Fd file(open(path().c_str(), O_RDWR | O_CLOEXEC));
    char byte = 0;
    ASSERT_EQ(pread(file.get(), &byte, 1, place), 1);
    byte = static_cast<char>(byte ^ 1);
    ASSERT_EQ(pwrite(file.get(), &byte, 1, place), 1);
  }

  transport::TemporaryFolder folder_;
  base::Fd tasks_{open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
};

TEST_F(LeaseFileTest, TheEndIsAtTwoThirds) {
  const LeaseTerm term{now + seconds(90), seconds(90)};
  EXPECT_EQ(term.end(), now + seconds(60));
}

TEST_F(LeaseFileTest, WhatIsWrittenIsReadWhileItIsMapped) {
  Lease lease(tasks_.get());
  LeaseView view(tasks_.get());
  EXPECT_FALSE(view.read(now)) << "nothing is written yet";
  for (int beats = 0; beats < 5; ++beats) {
    const LeaseTerm term{now + seconds(90 + beats), seconds(90)};
    ASSERT_TRUE(lease.extend(term.deadline, term.length));
    EXPECT_EQ(view.read(now), term);
  }
  ASSERT_TRUE(lease.extend(now + seconds(30), seconds(30)));
  EXPECT_EQ(view.read(now), (LeaseTerm{now + seconds(30), seconds(30)})) << "also back";
}

TEST_F(LeaseFileTest, TheFileIsTheUsersAlone) {
  const Lease lease(tasks_.get());
  struct stat status {};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(LeaseFileTest, AMissingOneSaysNothingUntilItIsMade) {
  LeaseView view(tasks_.get());
  EXPECT_FALSE(view.read(now));
  Lease(tasks_.get()).extend(now + seconds(90), seconds(90));
  EXPECT_TRUE(view.read(now));
}

TEST_F(LeaseFileTest, TheNextDaemonFindsWhatTheLastOneWrote) {
  Lease(tasks_.get()).extend(now + seconds(90), seconds(90));
  LeaseView view(tasks_.get());
  ASSERT_TRUE(view.read(now));
  Lease next(tasks_.get());
  EXPECT_EQ(view.read(now)->deadline, now + seconds(90));
  for (int beats = 1; beats < 4; ++beats) {
    ASSERT_TRUE(next.extend(now + seconds(90 + beats), seconds(90)));
    EXPECT_EQ(view.read(now)->deadline, now + seconds(90 + beats)) << "and writes where they look";
  }
}

TEST_F(LeaseFileTest, OneOfAnotherBootSaysNothing) {
  Lease(tasks_.get(), "before").extend(now + seconds(90), seconds(90));
  LeaseView view(tasks_.get(), "now");
  EXPECT_FALSE(view.read(now));
  Lease lease(tasks_.get(), "now");
  EXPECT_FALSE(view.read(now)) << "nor has the next daemon taken it over";
  lease.extend(now + seconds(60), seconds(60));
  EXPECT_EQ(view.read(now)->deadline, now + seconds(60));
}

TEST_F(LeaseFileTest, WhoIsKilledWhileHeWritesLeavesTheLastOne) {
  Lease lease(tasks_.get());
  lease.extend(now + seconds(90), seconds(90));   // at 128
  lease.extend(now + seconds(105), seconds(90));  // at 64
  LeaseView view(tasks_.get());
  EXPECT_EQ(view.read(now)->deadline, now + seconds(105));
  flip(64 + 8);
  EXPECT_EQ(view.read(now)->deadline, now + seconds(90));
  flip(128 + 16);
  EXPECT_FALSE(view.read(now));
}

TEST_F(LeaseFileTest, OneThatIsTooShortIsNotMappedAndIsReplaced) {
  ASSERT_TRUE(base::Fd(open(path().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)));
  LeaseView view(tasks_.get());
  EXPECT_FALSE(view.read(now));
  Lease(tasks_.get()).extend(now + seconds(90), seconds(90));
  EXPECT_TRUE(view.read(now));
}

TEST_F(LeaseFileTest, ALinkIsNotFollowed) {
  Lease(tasks_.get()).extend(now + seconds(90), seconds(90));
  ASSERT_EQ(rename(path().c_str(), folder_.file("other").c_str()), 0);
  ASSERT_EQ(symlink("other", path().c_str()), 0);
  EXPECT_FALSE(LeaseView(tasks_.get()).read(now));
  Lease(tasks_.get()).extend(now + seconds(30), seconds(30));
  EXPECT_EQ(LeaseView(tasks_.get()).read(now)->length, seconds(30));
}

TEST_F(LeaseFileTest, OneThatWasReplacedIsFoundWhenTheOldOneHasEnded) {
  Lease(tasks_.get()).extend(now + seconds(90), seconds(90));
  LeaseView view(tasks_.get());
  ASSERT_TRUE(view.read(now));
  unlink(path().c_str());
  Lease(tasks_.get()).extend(now + seconds(120), seconds(90));
  EXPECT_EQ(view.read(now)->deadline, now + seconds(90));
  EXPECT_EQ(view.read(now + seconds(60))->deadline, now + seconds(120));
}

TEST_F(LeaseFileTest, WhatIsReadWhileSomebodyWritesIsOneOfThose) {
  Lease lease(tasks_.get());
  lease.extend(now, now.time_since_epoch());
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    for (int beats = 1; beats <= 20'000; ++beats) {
      const BootTime deadline = now + nanoseconds(beats) * 1'000'003;
      lease.extend(deadline, deadline.time_since_epoch());
    }
    is_over = true;
  });
  LeaseView view(tasks_.get());
  BootTime last{};
  while (!is_over) {
    const auto term = view.read({});
    if (!term) ADD_FAILURE() << "nothing is there";
    if (!term) break;
    EXPECT_EQ(term->deadline.time_since_epoch(), term->length);
    EXPECT_GE(term->deadline, last);
    last = term->deadline;
  }
  writer.join();
  EXPECT_EQ(view.read({})->deadline, now + nanoseconds(20'000) * 1'000'003);
}

}  // namespace
}  // namespace duet::task
