#include "process/piped_child.h"

#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <filesystem>
#include <optional>
#include <system_error>

#include <gtest/gtest.h>

#include "duet/transport/await_test.h"
#include "duet/transport/channel_recorder_test.h"
#include "duet/transport/refused_watches_test.h"

namespace duet::process {
namespace {

class PipedChildTest : public testing::Test {
 protected:
  std::unique_ptr<PipedChild> start(const std::string& script) {
    return std::make_unique<PipedChild>(loop,
                                        Launch{.arguments = {"sh", "-c", script}, .environment = current_environment()},
                                        [this](ExitStatus got) { status = got; });
  }
  bool turn_until(const std::function<bool()>& done) {
    const base::TimePoint deadline = loop.now() + transport::test_patience;
    while (!done() && loop.now() < deadline) loop.turn(deadline);
    return done();
  }

  transport::Loop loop;
  std::optional<ExitStatus> status;
};

TEST_F(PipedChildTest, SpeaksThroughItsStandardStreams) {
  const auto child = start("read line; echo \"got $line\"; exit 3");
  const std::unique_ptr<transport::Channel> channel = child->take_channel();
  transport::ChannelRecorder recorder(*channel);
  EXPECT_EQ(channel->write("hello\n").count, 6U);
  ASSERT_TRUE(turn_until([&] { return status && recorder.ended; }));
  EXPECT_EQ(recorder.text, "got hello\n");
  EXPECT_EQ(status->code, 3);
  EXPECT_FALSE(child->is_running());
}

TEST_F(PipedChildTest, KeepsTheEndOfStderr) {
  const auto child = start("head -c 1000000 /dev/zero | tr '\\0' x >&2; echo the end >&2");
  ASSERT_TRUE(turn_until([&] { return status.has_value(); }));
  const std::string tail = child->error_output();
  EXPECT_EQ(tail.size(), PipedChild::kept_of_stderr);
  EXPECT_TRUE(tail.ends_with("xxxthe end\n"));
}

TEST_F(PipedChildTest, ReadsWhatIsWrittenLaterToo) {
  const auto child = start("echo a line >&2; read line; head -c 1000000 /dev/zero >&2");
  const std::unique_ptr<transport::Channel> channel = child->take_channel();
  ASSERT_TRUE(turn_until([&] { return child->error_output() == "a line\n"; }));
  EXPECT_EQ(channel->write("go on\n").count, 6U);
  EXPECT_TRUE(turn_until([&] { return status.has_value(); }));
}

TEST_F(PipedChildTest, TellsASignal) {
  const auto child = start("kill -9 $$");
  ASSERT_TRUE(turn_until([&] { return status.has_value(); }));
  EXPECT_EQ(status->signal, SIGKILL);
}

TEST_F(PipedChildTest, EndsWithItsOwner) {
  auto child = start("sleep 600");
  const std::string entry = "/proc/" + std::to_string(child->pid());
  EXPECT_TRUE(std::filesystem::exists(entry));
  child.reset();
  EXPECT_FALSE(std::filesystem::exists(entry));
  EXPECT_FALSE(status);
}

TEST_F(PipedChildTest, ThrowsIfItCannotStart) {
  EXPECT_THROW(PipedChild(loop, Launch{.arguments = {"/no/such/program"}, .environment = {}}, {}), LaunchError);
}

TEST_F(PipedChildTest, OneThatTheLoopCannotWatchIsEndedAndReaped) {
  transport::on_own_thread([&] {
    if (!transport::refuse_watches()) GTEST_SKIP() << "without seccomp";
    EXPECT_THROW(start("sleep 600"), std::system_error);
  });
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(PipedChildTest, TellsTheEndThoughItsStatusIsNobodys) {
  const auto before = signal(SIGCHLD, SIG_IGN);  // the kernel reaps
  {
    const auto child = start("read line; exit 3");
    child->take_channel().reset();
    ASSERT_TRUE(turn_until([&] { return status.has_value(); }));
    EXPECT_FALSE(status->is_known);
    EXPECT_FALSE(child->is_running());
    start("sleep 600").reset();
  }
  signal(SIGCHLD, before);
}

}  // namespace
}  // namespace duet::process
