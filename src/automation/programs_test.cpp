#include "automation/programs.h"

#include <fcntl.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/clock.h"
#include "duet/base/fd.h"
#include "duet/transport/temporary_folder_test.h"
#include "process/process_tree.h"

namespace duet::automation {
namespace {

using namespace std::chrono_literals;

struct ProgramsTest : testing::Test {
  Program shell(const std::string& text, std::chrono::milliseconds timeout = 90s) {
    return {.command = {"/bin/sh", "-c", text}, .timeout = timeout, .input = "{}\n"};
  }
  void run(Program program) {
    programs.run(
        std::move(program), [this] { ++started; }, [this](const std::string& failure) { ended.push_back(failure); });
  }
  bool wait(std::size_t count) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (ended.size() < count && std::chrono::steady_clock::now() < end) loop.turn(100ms);
    return ended.size() >= count;
  }
  std::string text_in(const std::string& name) const {
    std::ifstream file(folder.file(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  transport::TemporaryFolder folder;
  base::Fd root{open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  transport::Loop loop;
  Programs programs{loop, root.get()};
  std::size_t started = 0;
  std::vector<std::string> ended;
};

TEST_F(ProgramsTest, AProgramReadsItsInputInTheFolder) {
  run(shell("cat > got"));
  ASSERT_TRUE(wait(1));
  EXPECT_EQ(ended[0], "");
  EXPECT_EQ(text_in("got"), "{}\n");
}

TEST_F(ProgramsTest, AFailureSaysHow) {
  run(shell("echo first >&2; echo broken >&2; exit 3"));
  ASSERT_TRUE(wait(1));
  EXPECT_EQ(ended[0], "it ended with 3: broken");
  run({.command = {"/nonexistent/program"}});
  ASSERT_TRUE(wait(2));
  EXPECT_NE(ended[1], "");
}

TEST_F(ProgramsTest, TheLastLineOfItsErrorsIsFoundWhateverElseItWrote) {
  run(shell("printf broken >&2; exit 3"));
  ASSERT_TRUE(wait(1));
  EXPECT_EQ(ended[0], "it ended with 3: broken");
  run(shell(
      "echo $$ > pid.part; mv pid.part pid; head -c 30000 /dev/zero | tr '\\0' x >&2; printf '\\nbroken' >&2; exit 3"));
  const auto has_ended = [this] {
    const std::string pid = text_in("pid");
    const auto program = pid.empty() ? std::nullopt : process::read_process(std::stoi(pid));
    return program && program->is_zombie();
  };
  const auto end = std::chrono::steady_clock::now() + 60s;  // before anything of it is read
  while (!has_ended() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(wait(2));
  EXPECT_EQ(ended[1], "it ended with 3: broken");
}

/// Programs whose time passes when a test says so, and one of them that has started others: in its process group, in
/// another session, and in one without a parent that does not end when it is told to.
struct ProgramWithChildren : ProgramsTest {
  ProgramWithChildren() {
    others.run(
        shell("sleep 1000 & echo $! > child;"
              "setsid sleep 1000 & echo $! > other-session;"
              "(setsid sh -c 'trap \"\" TERM; echo $$ > orphan; while :; do sleep 0.1; done' &);"
              "while [ ! -s orphan ]; do sleep 0.01; done; touch all; wait",
              1s),
        [] {}, [this](const std::string& failure) { ended.push_back(failure); });
    EXPECT_TRUE(eventually([this] { return std::filesystem::exists(folder.file("all")); }));
  }
  template <typename Condition>
  bool eventually(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!condition() && std::chrono::steady_clock::now() < end) {
      own_loop.turn(own_loop.now());
      std::this_thread::sleep_for(1ms);
    }
    return condition();
  }
  bool is_running(const std::string& name) const {
    const auto found = process::read_process(std::stoi(text_in(name)));
    return found && !found->is_zombie();
  }
  bool all_have_ended() const { return !is_running("child") && !is_running("other-session") && !is_running("orphan"); }

  base::VirtualClock clock;
  transport::Loop own_loop{clock};
  Programs others{own_loop, root.get()};
};

TEST_F(ProgramWithChildren, ThatTakesTooLongIsEndedWithThem) {
  clock.advance(1s);
  EXPECT_TRUE(eventually([this] { return !is_running("child") && !is_running("other-session"); }));
  EXPECT_TRUE(is_running("orphan"));
  EXPECT_TRUE(ended.empty()) << "it has ended when they have";
  clock.advance(2s);
  ASSERT_TRUE(eventually([this] { return !ended.empty(); }));
  EXPECT_EQ(ended[0], "it took longer than 1000 ms");
  EXPECT_TRUE(all_have_ended());
}

TEST_F(ProgramWithChildren, IsKilledWithThemAtTheEnd) {
  others.close();
  EXPECT_TRUE(eventually([this] { return all_have_ended(); }));
}

TEST_F(ProgramsTest, AFewRunAtOnceAndTheOthersWait) {
  for (int i = 0; i < 10; ++i) run(shell("echo x >> all"));
  EXPECT_EQ(started, Programs::most_running);
  ASSERT_TRUE(wait(10));
  EXPECT_EQ(text_in("all").size(), 20U);
  for (std::size_t i = 0; i < Programs::most_running + Programs::most_waiting; ++i) run(shell("sleep 1000"));
  EXPECT_EQ(ended.size(), 10U);
  run(shell("true"));
  EXPECT_EQ(ended.back(), "too many programs of rules wait already");
  programs.close();
  EXPECT_EQ(ended.size(), 11U) << "nobody hears of what was cut off";
}

}  // namespace
}  // namespace duet::automation
