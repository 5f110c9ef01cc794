#include "bridge/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "duet/transport/await_test.h"
#include "duet/transport/temporary_folder_test.h"
#include "process/launch.h"

namespace duet::bridge {
namespace {

// A server with a child in its own session and a grandchild of a parent that is gone, all deaf to TERM.
constexpr const char* stubborn = R"(
trap '' TERM
echo $$ >> pids
setsid sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 1; done' &
(sh -c 'trap "" TERM; echo $$ >> pids; while :; do sleep 1; done' &)
while :; do sleep 1; done
)";

class GuardTest : public testing::Test {
 protected:
  void start(std::vector<std::string> command) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    control.reset(ends[0]);
    const base::Fd theirs(ends[1]);
    command.insert(command.begin(), {DUET_RPC_PROGRAM, std::string(guard_argument)});
    guard = process::launch({.arguments = command,
                             .environment = process::current_environment(),
                             .directory = folder.path(),
                             .further = {{theirs.get(), guard_control}}});
  }
  std::string hear() {
    std::array<char, 512> room;
    const ssize_t count = recv(control.get(), room.data(), room.size(), 0);
    return {room.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
  }
  std::vector<pid_t> pids() const {
    std::vector<pid_t> found;
    std::ifstream file(folder.file("pids"));
    for (pid_t pid = 0; file >> pid;) found.push_back(pid);
    return found;
  }
  static bool lives(pid_t pid) { return kill(pid, 0) == 0; }
  bool nobody_lives() const {
    const std::vector<pid_t> all = pids();
    return std::none_of(all.begin(), all.end(), lives);
  }
  void start_stubborn() {
    start({"sh", "-c", stubborn});
    EXPECT_TRUE(hear().starts_with("started "));
    ASSERT_TRUE(transport::await([this] { return pids().size() == 3; }));
  }

  transport::TemporaryFolder folder;
  base::Fd control;
  process::Child guard;
};

TEST_F(GuardTest, EndsTheWholeTreeWhenItsOwnerIsGone) {
  start_stubborn();
  control.reset();
  EXPECT_TRUE(transport::await([this] { return nobody_lives(); }));
  EXPECT_EQ(process::reap(guard).code, 0);
}

TEST_F(GuardTest, KillsTheWholeTreeWhenToldSo) {
  start_stubborn();
  send(control.get(), "kill", 4, 0);
  EXPECT_TRUE(hear().starts_with("ended 0 9"));
  EXPECT_EQ(process::reap(guard).code, 0);
  EXPECT_TRUE(nobody_lives());
}

TEST_F(GuardTest, KillsWithoutATermBefore) {
  start({"sh", "-c", "trap 'exit 7' TERM; echo $$ >> pids; while :; do sleep 0.01; done"});
  EXPECT_TRUE(hear().starts_with("started "));
  ASSERT_TRUE(transport::await([this] { return pids().size() == 1; }));
  send(control.get(), "kill", 4, 0);
  EXPECT_EQ(hear(), "ended 0 9");
  EXPECT_EQ(process::reap(guard).code, 0);
}

TEST_F(GuardTest, TellsHowTheServerEnded) {
  start({"sh", "-c", "exit 5"});
  EXPECT_TRUE(hear().starts_with("started "));
  EXPECT_EQ(hear(), "ended 5 0");
  EXPECT_EQ(process::reap(guard).code, 0);
}

TEST_F(GuardTest, TellsWhyTheServerCannotStart) {
  start({"no-such-program-at-all"});
  EXPECT_TRUE(hear().starts_with("failed 0 "));
  process::reap(guard);
}

TEST_F(GuardTest, TakesATermForAnOrder) {
  start_stubborn();
  kill(guard.pid, SIGTERM);
  EXPECT_EQ(process::reap(guard).code, 0);
  EXPECT_TRUE(nobody_lives());
}

}  // namespace
}  // namespace duet::bridge
