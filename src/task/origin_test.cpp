#include "task/origin.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "process/launch.h"
#include "task/outsider.h"

namespace duet::task {
namespace {

/// `sh -c SCRIPT` with a variable in its environment. The script puts a process into the background that does not have
/// it, and prints its pid.
class Family {
 public:
  explicit Family(const std::string& assignment) {
    process::Launch launch;
    const std::size_t sign = assignment.find('=');
    launch.environment = process::current_environment();
    launch.environment[assignment.substr(0, sign)] = assignment.substr(sign + 1);
    launch.arguments = {"/bin/sh", "-c",
                        "env -u " + assignment.substr(0, sign) + " sh -c 'sleep 60 & echo $!; wait' & wait"};
    base::Pipe pipe = base::make_pipe();
    launch.standard = {-1, pipe.write_end.get(), -1};
    top_ = process::launch(launch);
    pipe.write_end.reset();
    std::array<char, 32> text{};
    if (read(pipe.read_end.get(), text.data(), text.size() - 1) > 0) grandchild_ = std::stoi(text.data());
  }
  ~Family() {
    if (grandchild_ > 0) kill(grandchild_, SIGKILL);
    kill(top_.pid, SIGKILL);
    process::reap(top_);
  }
  Family(const Family&) = delete;
  Family& operator=(const Family&) = delete;

  pid_t grandchild() const { return grandchild_; }

 private:
  process::Child top_;
  pid_t grandchild_ = 0;
};

TEST(Origin, OfThisTestIsOutside) { EXPECT_EQ(origin_of(getpid()), Origin::outside); }

TEST(Origin, BelowAKeeperIsATaskHoweverDeep) {
  const Family family(std::string(nursery_variable) + "=1");
  ASSERT_GT(family.grandchild(), 0);
  EXPECT_EQ(origin_of(family.grandchild()), Origin::task);
}

TEST(Origin, BelowADaemonThatATaskStartedIsOutside) {
  const Family family{std::string(daemon_assignment)};
  ASSERT_GT(family.grandchild(), 0);
  EXPECT_EQ(origin_of(family.grandchild()), Origin::outside);
}

TEST(Origin, OfAProcessThatHasEndedIsNotKnown) {
  const process::Child child = process::launch({.arguments = {"/bin/true"}});
  process::reap(child);
  EXPECT_EQ(origin_of(child.pid), Origin::gone);
}

}  // namespace
}  // namespace duet::task
