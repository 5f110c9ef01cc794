#include "app/daemon/event_history.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "duet/peer/log_tape_test.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::app {
namespace {

namespace fs = std::filesystem;

struct Setting {
  transport::TemporaryFolder folder;
  base::Fd descriptor{open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  peer::LogTape tape;

  std::unique_ptr<EventHistory> read(EventHistory::Limits limits = {}) {
    return std::make_unique<EventHistory>(descriptor.get(), "events", tape.log(), limits);
  }
  std::string file() const { return folder.file("events"); }
  std::string text() const {
    std::ifstream stream(file());
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  void write(const std::string& text) const { std::ofstream(file()) << text; }
};

void add(EventHistory& history, int count) {
  for (int i = 0; i < count; ++i) history.add("taskQueued", {{"taskId", "task-" + std::to_string(history.next())}});
}

TEST(EventHistory, NumbersEventsWithoutGaps) {
  Setting s;
  const auto history = s.read();
  EXPECT_EQ(history->next(), 1U);
  EXPECT_EQ(history->oldest(), 1U);
  const Event& event = history->add("taskFailed", {{"taskId", "task-7"}, {"exitCode", 1}});
  EXPECT_EQ(event.seq, 1U);
  EXPECT_EQ(event.task_id, "task-7");
  EXPECT_EQ(event.params, R"({"taskId":"task-7","exitCode":1,"seq":1})");
  add(*history, 9);
  EXPECT_EQ(history->next(), 11U);
  for (std::uint64_t seq = 1; seq <= 10; ++seq) EXPECT_EQ(history->at(seq).seq, seq);
}

TEST(EventHistory, GoesOnAfterAnEnd) {
  Setting s;
  auto history = s.read();
  add(*history, 5);
  const std::string epoch = history->epoch();
  history->close();
  history = s.read();
  EXPECT_EQ(history->epoch(), epoch);
  EXPECT_EQ(history->next(), 6U);
  EXPECT_EQ(history->oldest(), 1U);
  EXPECT_EQ(history->at(3).params, R"({"taskId":"task-3","seq":3})");
  EXPECT_EQ(history->at(3).task_id, "task-3");
  EXPECT_EQ(history->at(3).kind, "taskQueued");
}

TEST(EventHistory, GoesOnAfterAKill) {
  Setting s;
  auto history = s.read();
  add(*history, 5);
  const std::string epoch = history->epoch();
  history = s.read();  // nobody has closed it
  EXPECT_EQ(history->epoch(), epoch);
  EXPECT_EQ(history->next(), 6U);
}

TEST(EventHistory, ForgetsALineThatWasBeingWritten) {
  Setting s;
  auto history = s.read();
  add(*history, 3);
  const std::string epoch = history->epoch();
  for (const char* const half : {"{", R"({"seq":4,"kind":"taskQueued","params":{"seq":4})"}) {
    std::ofstream(s.file(), std::ios::app) << half;
    history = s.read();
    EXPECT_EQ(history->epoch(), epoch);
    EXPECT_EQ(history->next(), 4U);
  }
}

TEST(EventHistory, BeginsAnEpochWhenTheFileIsGoneOrDamaged) {
  Setting s;
  auto history = s.read();
  add(*history, 3);
  history->close();
  const std::string good = s.text();
  std::string epoch = history->epoch();
  const auto expect_new = [&](const std::string& text) {
    s.write(text);
    history = s.read();
    EXPECT_NE(history->epoch(), epoch) << text;
    EXPECT_EQ(history->next(), 1U) << text;
    EXPECT_EQ(history->oldest(), 1U) << text;
    epoch = history->epoch();
  };
  expect_new("");
  expect_new("rubbish\n");
  expect_new("{}\n");
  expect_new(std::string(100'000, '\0'));
  expect_new(good.substr(good.find('\n') + 1));  // without its head
  std::string gap = good;
  gap.erase(gap.find(R"({"seq":2)"), gap.find(R"({"seq":3)") - gap.find(R"({"seq":2)"));
  expect_new(gap);
  expect_new(good.substr(0, good.find('\n') + 1) + R"({"seq":1,"kind":"taskQueued","params":[]})"
                                                   "\n");
  fs::remove(s.file());
  history = s.read();
  EXPECT_NE(history->epoch(), epoch);
}

TEST(EventHistory, BeginsAnEpochWhenTheMachineWentDownUnderIt) {
  Setting s;
  auto history = s.read();
  add(*history, 3);
  const std::string epoch = history->epoch();
  std::string text = s.text();
  const std::size_t boot = text.find(R"("boot":")") + 8;
  text.replace(boot, text.find('"', boot) - boot, "another");
  s.write(text);
  history = s.read();
  EXPECT_NE(history->epoch(), epoch);
  EXPECT_EQ(history->next(), 1U);
}

TEST(EventHistory, GoesOnInAnotherBootWhenTheDaemonHadEnded) {
  Setting s;
  auto history = s.read();
  add(*history, 3);
  history->close();
  const std::string epoch = history->epoch();
  std::string text = s.text();
  const std::size_t boot = text.find(R"("boot":")") + 8;
  text.replace(boot, text.find('"', boot) - boot, "another");
  s.write(text);
  history = s.read();
  EXPECT_EQ(history->epoch(), epoch);
  EXPECT_EQ(history->next(), 4U);
}

TEST(EventHistory, IsBoundedAndForgetsTheOldest) {
  Setting s;
  constexpr EventHistory::Limits limits{.bytes = 20'000};
  auto history = s.read(limits);
  add(*history, 10'000);
  EXPECT_EQ(history->next(), 10'001U);
  EXPECT_GT(history->oldest(), 9'000U);
  EXPECT_LT(history->oldest(), 10'000U);
  EXPECT_LT(fs::file_size(s.file()), 3 * limits.bytes);
  const std::uint64_t oldest = history->oldest();
  const std::string epoch = history->epoch();
  history = s.read(limits);
  EXPECT_EQ(history->epoch(), epoch);
  EXPECT_EQ(history->next(), 10'001U);
  EXPECT_EQ(history->oldest(), oldest);
  EXPECT_EQ(history->at(oldest).seq, oldest);
}

TEST(EventHistory, KeepsItsNumbersWhenNothingIsLeftToRemember) {
  Setting s;
  auto history = s.read({.bytes = 1});
  add(*history, 100);
  EXPECT_EQ(history->oldest(), 100U);  // one is always kept
  history->close();
  history = s.read({.bytes = 1});
  EXPECT_EQ(history->next(), 101U);
}

TEST(EventHistory, IsOursAlone) {
  Setting s;
  const mode_t mask = umask(0);
  const auto history = s.read();
  umask(mask);
  EXPECT_EQ(fs::status(s.file()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(EventHistory, ALinkInItsPlaceIsNotFollowed) {
  Setting s;
  const std::string target = s.folder.file("target");
  std::ofstream(target) << "precious";
  fs::create_symlink(target, s.file());
  const auto history = s.read();
  add(*history, 1);
  std::ifstream stream(target);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), "precious");
  EXPECT_FALSE(fs::is_symlink(s.file()));
}

/// No file of ours may grow beyond so many bytes, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_{};
};

TEST(EventHistory, WithoutRoomOnDiskItGoesOnInMemoryAndTheNextOneBeginsAnEpoch) {
  Setting s;
  auto history = s.read();
  const std::string epoch = history->epoch();
  {
    const FullDisk full(4096);
    add(*history, 1000);
  }
  add(*history, 1);
  EXPECT_EQ(history->next(), 1002U);
  EXPECT_EQ(history->at(1).seq, 1U);
  EXPECT_EQ(s.tape.lines().size(), 1U);
  history->close();
  history = s.read();
  EXPECT_NE(history->epoch(), epoch);
}

}  // namespace
}  // namespace duet::app
