#include "duet/base/log_sink.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/log.h"

namespace duet::base {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

constexpr std::string_view kLine = "0123456789\n";

class LogFile : public testing::Test {
 protected:
  LogFile() {
    std::string name = testing::TempDir() + "duet-log-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    path_ = folder_ / "rpc.log";
  }
  ~LogFile() override { fs::remove_all(folder_); }

  std::unique_ptr<LogSink> open(LogFileLimits limits = {}) {
    OpenedLogFile opened = open_log_file(path_, limits);
    EXPECT_EQ(opened.reason, "");
    return std::move(opened.sink);
  }

  fs::path backup(int number) const { return path_.string() + "." + std::to_string(number); }

  static std::string content(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
  fs::path path_;
};

TEST_F(LogFile, IsAppendedTo) {
  std::ofstream(path_) << "old\n";
  EXPECT_EQ(open()->write(kLine), kLine.size());
  EXPECT_EQ(open()->write(kLine), kLine.size());
  EXPECT_EQ(content(path_), "old\n0123456789\n0123456789\n");
}

TEST_F(LogFile, IsCreatedForItsOwnerAlone) {
  const mode_t before = ::umask(0);
  const auto sink = open({.rotate_at = 1});
  sink->write(kLine);
  sink->write(kLine);
  ::umask(before);
  for (const fs::path& path : {path_, backup(1)}) {
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write) << path;
  }
}

TEST_F(LogFile, IsNotInheritedByChildren) {
  const auto sink = open();
  int found = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (fs::read_symlink(entry, gone) != path_) continue;
    ++found;
    EXPECT_TRUE(::fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC);
  }
  EXPECT_EQ(found, 1);
}

TEST_F(LogFile, ThatCannotBeOpenedHasAReason) {
  EXPECT_EQ(open_log_file(folder_ / "no" / "such.log").reason, "No such file or directory");
  EXPECT_EQ(open_log_file(folder_).reason, "Is a directory");
  EXPECT_EQ(open_log_file("").reason, "No such file or directory");
  EXPECT_EQ(open_log_file(folder_).sink, nullptr);
}

TEST_F(LogFile, MayBeAFifoIfItHasAReader) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(open_log_file(path_).reason, "No such device or address");

  Fd reader(::open(path_.c_str(), O_RDONLY | O_NONBLOCK));
  const auto sink = open({.rotate_at = 1});
  EXPECT_EQ(sink->write(kLine), kLine.size());
  EXPECT_EQ(sink->write(kLine), kLine.size());
  std::array<char, 100> read{};
  EXPECT_EQ(::read(reader.get(), read.data(), read.size()), 22);
  EXPECT_TRUE(fs::is_fifo(path_)) << "it is not rotated";
  EXPECT_FALSE(fs::exists(backup(1)));
}

TEST_F(LogFile, IsRotatedBeforeItGrowsBeyondTheLimit) {
  const auto sink = open({.rotate_at = 25});
  for (const char* line : {"line one\n", "line two\n", "line three\n", "line four\n"}) sink->write(line);
  EXPECT_EQ(content(backup(1)), "line one\nline two\n");
  EXPECT_EQ(content(path_), "line three\nline four\n");
}

TEST_F(LogFile, KeepsThreeBackups) {
  const auto sink = open({.rotate_at = 1});
  for (char c = 'a'; c <= 'h'; ++c) sink->write(std::string{c, '\n'});
  EXPECT_EQ(content(path_), "h\n");
  EXPECT_EQ(content(backup(1)), "g\n");
  EXPECT_EQ(content(backup(2)), "f\n");
  EXPECT_EQ(content(backup(3)), "e\n");
  EXPECT_FALSE(fs::exists(backup(4)));
}

TEST_F(LogFile, IsRotatedAtTenMegabytes) {
  { std::ofstream(path_) << "old\n"; }
  fs::resize_file(path_, 10'000'000 - kLine.size());
  const auto sink = open();
  sink->write(kLine);
  EXPECT_EQ(fs::file_size(path_), 10'000'000u);
  sink->write(kLine);
  EXPECT_EQ(content(path_), kLine);
  EXPECT_EQ(fs::file_size(backup(1)), 10'000'000u);
}

TEST_F(LogFile, ThatIsALinkHasItsBackupsBesideTheRealFile) {
  fs::create_directory(folder_ / "real");
  fs::create_symlink(folder_ / "real" / "file", path_);
  const auto sink = open({.rotate_at = 1});
  sink->write("a\n");
  sink->write("b\n");
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(content(path_), "b\n");
  EXPECT_EQ(content(folder_ / "real" / "file.1"), "a\n");
}

TEST_F(LogFile, ThatAnotherHasRotatedIsNotRotatedAgain) {
  const auto one = open({.rotate_at = 20, .look_every = 1h});
  const auto two = open({.rotate_at = 20, .look_every = 1h});
  one->write("from one\n");
  two->write("from two\n");
  one->write("one rotates\n");
  two->write("two too\n");
  EXPECT_EQ(content(path_), "one rotates\ntwo too\n");
  EXPECT_EQ(content(backup(1)), "from one\nfrom two\n");
  EXPECT_FALSE(fs::exists(backup(2)));
}

TEST_F(LogFile, WaitsForNobodyWhoHoldsTheLock) {
  const auto sink = open({.rotate_at = 1, .look_every = 1h});
  sink->write("a\n");
  Fd other(::open(path_.c_str(), O_RDONLY));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  sink->write("b\n");
  EXPECT_EQ(content(path_), "a\nb\n");
  other.reset();
  sink->write("c\n");
  EXPECT_EQ(content(path_), "c\n");
  EXPECT_EQ(content(backup(1)), "a\nb\n");
}

TEST_F(LogFile, GoesOnGrowingWhileItCannotBeRotatedAndOverwritesNothing) {
  fs::create_directories(backup(3) / "in the way");
  std::ofstream(backup(2)) << "older\n";
  std::ofstream(backup(1)) << "old\n";
  const auto sink = open({.rotate_at = 1, .look_every = 0ms});
  sink->write("a\n");
  sink->write("b\n");
  EXPECT_EQ(content(path_), "a\nb\n");
  EXPECT_EQ(content(backup(1)), "old\n");
  EXPECT_EQ(content(backup(2)), "older\n");

  fs::remove_all(backup(3));
  sink->write("c\n");
  EXPECT_EQ(content(path_), "c\n") << "tried again later";
  EXPECT_EQ(content(backup(1)), "a\nb\n");
  EXPECT_EQ(content(backup(2)), "old\n");
  EXPECT_EQ(content(backup(3)), "older\n");
}

TEST_F(LogFile, ThatWasMovedIsOpenedAnew) {
  const auto sink = open({.look_every = 0ms});
  sink->write("a\n");
  fs::rename(path_, folder_ / "moved");
  sink->write("b\n");
  EXPECT_EQ(content(folder_ / "moved"), "a\n");
  EXPECT_EQ(content(path_), "b\n");
}

TEST_F(LogFile, ThatWasDeletedIsOpenedAnewAtOnce) {
  const auto sink = open({.look_every = 1h});
  sink->write("a\n");
  fs::remove(path_);
  sink->write("b\n");
  EXPECT_EQ(content(path_), "b\n");
}

TEST_F(LogFile, IsNotMadeAnewWhereNoFileIsToBeMade) {
  const auto none = std::make_shared<std::atomic<bool>>(false);
  const auto sink = open({.makes_no_file = none});
  sink->write("a\n");
  *none = true;
  EXPECT_EQ(sink->write("b\n"), 2u);
  EXPECT_EQ(content(path_), "a\nb\n");
  fs::remove(path_);
  EXPECT_EQ(sink->write("c\n"), 2u);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(LogFile, LosesLinesWhileItsFolderIsGone) {
  path_ = folder_ / "deep" / "rpc.log";
  fs::create_directory(path_.parent_path());
  const auto sink = open();
  sink->write("a\n");
  fs::remove_all(path_.parent_path());
  EXPECT_EQ(sink->write("b\n"), 0u);
  fs::create_directory(path_.parent_path());
  EXPECT_EQ(sink->write("c\n"), 2u);
  EXPECT_EQ(content(path_), "c\n");
}

TEST_F(LogFile, RefusesLinesOnAFullDevice) {
  OpenedLogFile opened = open_log_file("/dev/full");
  ASSERT_NE(opened.sink, nullptr);
  EXPECT_EQ(opened.sink->write(kLine), 0u);
}

/// Lets no file of this process grow beyond `bytes`, as a full disk would.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST_F(LogFile, DoesNotGlueALineToOneThatBrokeOff) {
  const auto sink = open();
  {
    const FileSizeLimit limit(15);
    EXPECT_EQ(sink->write(kLine), 11u);
    EXPECT_EQ(sink->write(kLine), 4u);
    EXPECT_EQ(sink->write(kLine), 0u);
  }
  EXPECT_EQ(sink->write(kLine), 11u);
  EXPECT_EQ(sink->write(kLine), 11u);
  EXPECT_EQ(content(path_), "0123456789\n0123\n0123456789\n0123456789\n");
}

TEST_F(LogFile, IsWrittenAgainWhenTheDiskHasRoomAgain) {
  Log log(open(), Level::warn, {.flush = 20s});
  log.warn("before");
  EXPECT_TRUE(log.flush());
  {
    const FileSizeLimit limit(fs::file_size(path_));
    log.warn("lost");
    log.warn("lost");
    EXPECT_TRUE(log.flush());
  }
  log.warn("after");
  EXPECT_TRUE(log.close());
  const std::string all = content(path_);
  EXPECT_EQ(all.find("lost"), all.npos);
  EXPECT_NE(all.find(" dropped=2\n"), all.npos);
  EXPECT_TRUE(all.ends_with(" after\n"));
}

TEST_F(LogFile, InAFolderThatIsHeldOpenGoesWithIt) {
  fs::create_directory(folder_ / "before");
  const Fd held(::open((folder_ / "before").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  path_ = "/proc/self/fd/" + std::to_string(held.get()) + "/daemon.log";
  const auto sink = open({.rotate_at = 25, .look_every = 0ms});
  fs::rename(folder_ / "before", folder_ / "after");
  fs::create_directory(folder_ / "before");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sink->write(kLine), kLine.size());
  EXPECT_EQ(content(folder_ / "after/daemon.log"), kLine);
  EXPECT_EQ(content(folder_ / "after/daemon.log.1"), std::string(kLine) + std::string(kLine));
  EXPECT_TRUE(fs::is_empty(folder_ / "before"));
}

TEST_F(LogFile, SharedByTwoLogsLosesAndTearsNoLine) {
  constexpr int lines = 3000;
  const LogFileLimits limits{.rotate_at = 150'000};
  const auto write_lines = [&](int writer) {
    Log log(open(limits), Level::info, {.queue_bytes = 10'000'000, .flush = 20s});
    for (int i = 0; i < lines; ++i) {
      log.info("line", {{"writer", writer}, {"n", i}});
      if (i % 10 == 0) log.flush();
    }
    EXPECT_TRUE(log.close());
  };
  std::thread other(write_lines, 1);
  write_lines(0);
  other.join();

  std::map<std::string, int> seen;
  int files = 0;
  for (const fs::path& path : {path_, backup(1), backup(2), backup(3)}) {
    if (fs::exists(path)) ++files;
    std::istringstream stream(content(path));
    for (std::string line; std::getline(stream, line);) ++seen[line.substr(std::min<std::size_t>(31, line.size()))];
  }
  EXPECT_EQ(seen.size(), 2u * lines);
  for (int writer = 0; writer < 2; ++writer) {
    for (int i = 0; i < lines; ++i) {
      const std::string line = "line writer=" + std::to_string(writer) + " n=" + std::to_string(i);
      ASSERT_EQ(seen[line], 1) << line;
    }
  }
  EXPECT_GE(files, 2) << "nothing was rotated";
}

}  // namespace
}  // namespace duet::base
