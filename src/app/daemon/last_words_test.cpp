#include "app/daemon/last_words.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "app/project/last_end.h"
#include "app/project/temporary_project_test.h"
#include "duet/base/activity.h"
#include "duet/base/blocked_signals.h"
#include "duet/base/sanitizer_test.h"

namespace duet::app {
namespace {

/// A process that ends, and what it leaves.
struct LastWordsTest : testing::Test {
  void SetUp() override {
    if (base::under_sanitizer) GTEST_SKIP() << "signals are the sanitizer's";
  }

  int signal_that_ends(const std::function<void()>& how) {
    const pid_t pid = fork();
    if (pid == 0) {
      const rlimit no_core{};
      setrlimit(RLIMIT_CORE, &no_core);
      const LastWords words(folder, log);
      how();
      _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    folder.write_small(pid_name, std::to_string(pid) + '\n');
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  std::string logged() const { return place.read(log); }
  bool is_logged(const std::string& text) const { return logged().find(text) != std::string::npos; }

  TemporaryProject place;
  StateFolder folder = StateFolder::make(place.project());
  std::string log = place.path() / "log";
  std::string empty = (place.write(log, "before\n"), "");
};

[[noreturn]] void throw_something() { throw std::runtime_error("nobody catches this"); }
[[noreturn]] void throw_through() noexcept { throw_something(); }

TEST_F(LastWordsTest, ASignalIsToldInTheLogAndKeptForWhoAsks) {
  EXPECT_EQ(signal_that_ends([] { raise(SIGBUS); }), SIGBUS);
  EXPECT_TRUE(logged().starts_with("before\n2")) << logged();
  EXPECT_TRUE(is_logged("Z error ended by SIGBUS pid=")) << logged();
  const std::optional<LastEnd> end = read_last_end(folder);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->how, "ended by SIGBUS");
  EXPECT_EQ(end->at.size(), 24U);
}

TEST_F(LastWordsTest, AFaultHasItsAddressAndWhatRan) {
  EXPECT_EQ(signal_that_ends([] {
              base::activity = {.callback = &typeid(LastWords), .method = "test.crash"};
              *reinterpret_cast<volatile int*>(0x10) = 1;  // NOLINT
            }),
            SIGSEGV);
  EXPECT_TRUE(is_logged(R"( address="0x10" )")) << logged();
  EXPECT_TRUE(is_logged(R"( ran="app::LastWords, test.crash")")) << logged();
}

TEST_F(LastWordsTest, AnExceptionThatNobodyCatchesIsNamed) {
  EXPECT_EQ(signal_that_ends([] { throw_through(); }), SIGABRT);
  EXPECT_TRUE(is_logged(R"(reason="uncaught exception, std::runtime_error: nobody catches this")")) << logged();
}

TEST_F(LastWordsTest, AThreadThatGetsNoOtherSignalsHasWordsToo) {
  EXPECT_EQ(signal_that_ends([] {
              const base::BlockedSignals blocked;
              std::thread([] {
                pthread_setname_np(pthread_self(), "helper");
                *reinterpret_cast<volatile int*>(0x10) = 1;  // NOLINT
              }).join();
            }),
            SIGSEGV);
  EXPECT_TRUE(is_logged(R"( thread="helper" )")) << logged();
}

TEST_F(LastWordsTest, MemoryThatRanOutIsCounted) {
  EXPECT_EQ(signal_that_ends([] {
              const rlimit little{.rlim_cur = std::size_t{1} << 30, .rlim_max = std::size_t{1} << 30};
              setrlimit(RLIMIT_AS, &little);
              []() noexcept { std::string(std::size_t{1} << 40, 'x'); }();
            }),
            SIGABRT);
  EXPECT_TRUE(is_logged("std::bad_alloc")) << logged();
  EXPECT_TRUE(is_logged(" memory_refusals=1")) << logged();
}

TEST_F(LastWordsTest, ALogThatIsGoneLeavesTheRecord) {
  log = place.path() / "nowhere/log";
  EXPECT_EQ(signal_that_ends([] {
              close(STDERR_FILENO);
              std::abort();
            }),
            SIGABRT);
  EXPECT_EQ(read_last_end(folder)->how, "ended by SIGABRT");
}

TEST_F(LastWordsTest, WhoEndsByItselfSaysNothing) {
  EXPECT_EQ(signal_that_ends([] {}), 0);
  EXPECT_EQ(logged(), "before\n");
}

TEST_F(LastWordsTest, AfterItEverythingIsAsBefore) {
  struct sigaction before {};
  sigaction(SIGSEGV, nullptr, &before);
  const auto terminate = std::get_terminate();
  { const LastWords words(folder, log); }
  struct sigaction after {};
  sigaction(SIGSEGV, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
  EXPECT_EQ(std::get_terminate(), terminate);
  EXPECT_EQ(std::get_new_handler(), nullptr);
}

}  // namespace
}  // namespace duet::app
