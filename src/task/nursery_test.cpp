#include "task/nursery.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "duet/base/few_descriptors_test.h"
#include "duet/base/log_tape_test.h"
#include "duet/base/sanitizer_test.h"
#include "task/keeper_fixture_test.h"

namespace duet::task {
namespace {

constexpr std::uint32_t argument(unsigned number) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + number * sizeof(std::uint64_t));
}
constexpr std::uint32_t refuse(int error) { return SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error); }
sock_filter load(std::uint32_t place) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, place); }
sock_filter answer(std::uint32_t what) { return BPF_STMT(BPF_RET | BPF_K, what); }
sock_filter go_on_if_equal(std::uint32_t value, std::uint8_t else_skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, else_skip);
}

/// Does `work` in a thread of its own, for which the kernel refuses some calls, and for all that it starts.
template <typename Work>
void do_refused(std::vector<sock_filter> filter, Work work) {
  std::thread([&] {
    const sock_fprog program{.len = static_cast<unsigned short>(filter.size()), .filter = filter.data()};
    ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    EXPECT_NO_THROW(work());
  }).join();
}

int next_descriptor() { return base::Fd(open("/dev/null", O_RDONLY | O_CLOEXEC)).get(); }

class NurseryTest : public KeeperTest {};

TEST_F(NurseryTest, AWatchThatIsRefusedOnceCostsOneKeeper) {
  transport::Loop loop;
  Nursery nursery(loop, tasks_.get(), executable_.get());
  const int refused = next_descriptor();
  do_refused(
      {load(offsetof(seccomp_data, nr)), go_on_if_equal(SYS_epoll_ctl, 5), load(argument(1)),
       go_on_if_equal(EPOLL_CTL_ADD, 3), load(argument(2)), go_on_if_equal(static_cast<std::uint32_t>(refused), 1),
       answer(refuse(ENOSPC)), answer(SECCOMP_RET_ALLOW)},
      [&] {
        EXPECT_THROW(nursery.take(), std::system_error);
        const base::Fd taken(open("/dev/null", O_RDONLY | O_CLOEXEC));
        EXPECT_EQ(taken.get(), refused);
        EXPECT_TRUE(nursery.take());
      });
}

TEST_F(NurseryTest, WithoutADescriptorForTheLineNoneIsKept) {
  if (base::under_sanitizer) GTEST_SKIP() << "the sanitizer needs the descriptors that this test takes away";
  transport::Loop loop;
  Nursery nursery(loop, tasks_.get(), executable_.get());
  const KeeperLink first = nursery.take();
  {
    const base::FewDescriptors one(1);
    for (int tries = 0; tries < 3; ++tries) EXPECT_THROW(nursery.take(), std::system_error);
    EXPECT_GE(next_descriptor(), 0);
  }
  EXPECT_EQ(files(), std::vector<std::string>{first.name});
}

TEST_F(NurseryTest, AKeeperThatCannotBeForkedIsAnsweredFor) {
  base::LogTape tape;
  do_refused({load(offsetof(seccomp_data, nr)), go_on_if_equal(SYS_clone, 3), load(argument(0)),
              BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_VM, 1, 0), answer(refuse(EAGAIN)), answer(SECCOMP_RET_ALLOW)},
             [&] {
               world_ = std::make_unique<SystemKeeperWorld>(loop_, tasks_.get(), executable_.get());
               keepers_ = std::make_unique<Keepers>(loop_, tape.log(), *world_, settings_, events());
               for (int tries = 0; tries < 2; ++tries) {
                 EXPECT_TRUE(run(shell("true")).never_began);
                 EXPECT_FALSE(RunRecord::open(tasks_.get(), {1, 1}));
               }
               stop_daemon();
             });
  const std::vector<std::string> lines = tape.lines();
  ASSERT_FALSE(lines.empty());
  EXPECT_NE(lines.front().find("no keeper can be forked"), std::string::npos) << lines.front();
}

TEST_F(NurseryTest, KeepersDoNotFindTheWayToTheDatabaseNorWhatATaskFinds) {
  const std::vector<std::string> names{"DUET_TASK_ID",   "DUET_TASK_MARK", "DUET_TASK_FENCE", "DUET_TASK_WORKER",
                                       "DUET_RPC_STORE", "PGPASSWORD",     "PGPASSFILE"};
  for (const std::string& name : names) setenv(name.c_str(), "canary", 1);
  setenv("DUET_OTHER", "canary", 1);
  keepers().start(shell("while [ ! -e go ]; do sleep 0.01; done"));
  for (const std::string& name : names) unsetenv(name.c_str());
  unsetenv("DUET_OTHER");
  ASSERT_TRUE(turn_until([&] { return story({1, 1}).started.has_value(); }));
  const pid_t keeper = keeper_of({1, 1});
  for (const std::string& name : names) EXPECT_FALSE(process::has_in_environment(keeper, name + "=canary")) << name;
  EXPECT_TRUE(process::has_in_environment(keeper, "DUET_OTHER=canary"));
  std::ofstream(folder_.file("go")) << "";
  EXPECT_TRUE(finish({1, 1}));
}

TEST_F(NurseryTest, OneThatIsSuspendedIsWokenByAStartAndByACancel) {
  const auto suspend_nursery = [] {
    for (const process::ProcessEntry& entry : process::descendants(getpid())) {
      std::string name;
      std::getline(std::ifstream("/proc/" + std::to_string(entry.pid) + "/comm"), name);
      if (name == "duet-nursery") return kill(entry.pid, SIGSTOP) == 0;
    }
    return false;
  };
  const pid_t keeper = std::stoi(run(shell("echo $PPID")).outcome->result);
  kill(keeper, SIGKILL);  // or it would be used again
  ASSERT_TRUE(turn_until([&] { return !is_alive(keeper); }));
  ASSERT_TRUE(suspend_nursery());
  EXPECT_EQ(run(shell("exit 3", 2)).outcome->code, 3);
  keepers().start(shell("sleep 1000", 3));
  keepers().start(shell("sleep 1000", 4));
  ASSERT_TRUE(suspend_nursery());
  keepers().cancel({3, 1});
  keepers().cancel({4, 1});
  EXPECT_TRUE(finish({3, 1}));
  EXPECT_TRUE(finish({4, 1}));
}

}  // namespace
}  // namespace duet::task
