#include "task/output.h"

#include <fcntl.h>
#include <rapidcheck.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <string>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"
#include "task/output_file.h"
#include "task/run_record.h"

namespace duet::task {
namespace {

constexpr RunId run{1, 1};
constexpr std::size_t everything = std::size_t{1} << 30;

// Bytes that tell their own offset: eight of them are a number, the next eight the next one.
std::string pattern(std::uint64_t from, std::uint64_t to) {
  std::string bytes;
  for (std::uint64_t offset = from; offset < to; ++offset) {
    bytes += static_cast<char>((offset / 8 * 0x9e3779b97f4a7c15) >> (offset % 8 * 8));
  }
  return bytes;
}

// With a limit on the size of files writing fails as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t size) : signal_(signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{.rlim_cur = size, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, signal_);
  }

 private:
  rlimit before_{};
  sighandler_t signal_;
};

class OutputTest : public testing::Test {
 protected:
  OutputTest()
      : tasks_(open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
        record_(RunRecord::create(tasks_.get(), run, "nobody")) {}

  OutputPiece read(std::uint64_t offset, std::size_t limit = everything) const {
    return read_output(tasks_.get(), run, offset, limit);
  }

  /// Reads all there is, piece by piece, and checks each byte. Returns what was dropped.
  static std::uint64_t check(int tasks, std::uint64_t total, std::size_t limit) {
    std::uint64_t dropped = 0;
    std::uint64_t offset = 0;
    while (offset < total) {
      const OutputPiece piece = read_output(tasks, run, offset, limit);
      EXPECT_EQ(piece.total, total);
      EXPECT_LE(piece.bytes.size(), limit);
      EXPECT_EQ(piece.next, piece.offset + piece.bytes.size());
      EXPECT_EQ(piece.bytes, pattern(piece.offset, piece.next));
      EXPECT_EQ(piece.dropped.has_value(), piece.offset != offset);
      if (piece.dropped) {
        EXPECT_EQ(piece.dropped->to, piece.offset);
        EXPECT_LE(piece.dropped->from, offset);
        dropped += piece.dropped->to - piece.dropped->from;
      }
      if (piece.next == offset) break;
      offset = piece.next;
    }
    EXPECT_EQ(offset, total);
    return dropped;
  }

  transport::TemporaryFolder folder_;
  base::Fd tasks_;
  RunRecord record_;
};

TEST_F(OutputTest, WithoutOutputThereIsNothingToRead) {
  const OutputPiece piece = read(100);
  EXPECT_EQ(piece.offset, 0U);
  EXPECT_EQ(piece.total, 0U);
  EXPECT_TRUE(piece.bytes.empty());
  EXPECT_TRUE(dropped_output(tasks_.get(), run).empty());
}

TEST_F(OutputTest, TheFileIsTheOutput) {
  OutputFile file(tasks_.get(), run, record_);
  file.append("one ");
  file.append("two");
  EXPECT_EQ(read(0).bytes, "one two");
  EXPECT_EQ(read(4, 2).bytes, "tw");
  EXPECT_EQ(read(4, 2).next, 6U);
  EXPECT_EQ(read(1000).offset, 7U);
  EXPECT_EQ(std::filesystem::file_size(folder_.file("task-1.1.out")), 7U);
}

TEST_F(OutputTest, UpToTheLimitNothingIsDropped) {
  OutputFile file(tasks_.get(), run, record_, 1000);
  file.append(pattern(0, 1000));
  EXPECT_EQ(check(tasks_.get(), 1000, 77), 0U);
  file.append(pattern(1000, 1001));
  EXPECT_EQ(check(tasks_.get(), 1001, 77), 1U);
  EXPECT_EQ(dropped_output(tasks_.get(), run), (std::vector<OutputRange>{{500, 501}}));
}

TEST_F(OutputTest, ARecordIsNotNeededForWhatIsWhole) {
  OutputFile file(tasks_.get(), run, record_, 1000);
  file.append(pattern(0, 900));
  unlinkat(tasks_.get(), record_name(run).c_str(), 0);
  EXPECT_EQ(check(tasks_.get(), 900, 1000), 0U);
}

TEST_F(OutputTest, AReadInTheGapSaysWhereTheTailStarts) {
  OutputFile file(tasks_.get(), run, record_, 1000);
  file.append(pattern(0, 5000));
  const OutputPiece piece = read(2000, 10);
  EXPECT_EQ(piece.offset, 4500U);
  EXPECT_EQ(piece.bytes, pattern(4500, 4510));
  EXPECT_EQ(piece.dropped->from, 500U);
  EXPECT_EQ(piece.dropped->to, 4500U);
  EXPECT_EQ(read(499, 10).bytes, pattern(499, 500));
  EXPECT_EQ(read(500, 0).offset, 4500U);
  EXPECT_EQ(read(4500).dropped, std::nullopt);
}

TEST_F(OutputTest, AnyPortionsGiveHeadAndTail) {
  EXPECT_TRUE(rc::check("head, gap and tail are exact", [] {
    const transport::TemporaryFolder folder;
    const base::Fd tasks(open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const RunRecord record = RunRecord::create(tasks.get(), run, "nobody");
    const std::uint64_t limit = *rc::gen::inRange<std::uint64_t>(1, 200);
    const auto portions = *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 150));
    OutputFile file(tasks.get(), run, record, limit);
    std::uint64_t total = 0;
    for (const std::uint64_t portion : portions) {
      file.append(pattern(total, total + portion));
      total += portion;
      const std::uint64_t dropped = check(tasks.get(), total, 1000);
      RC_ASSERT(dropped == (total > limit ? total - limit : 0));
      RC_ASSERT(!testing::Test::HasFailure());
    }
  }));
}

TEST_F(OutputTest, AReaderKeepsUpWithAWriter) {
  constexpr std::uint64_t total = 40'000'000;
  const std::string bytes = pattern(0, total);
  std::atomic<bool> done = false;
  auto writer = std::async(std::launch::async, [&] {
    OutputFile file(tasks_.get(), run, record_, 2'000'000);
    for (std::uint64_t at = 0; at < total; at += 10'000) file.append(std::string_view(bytes).substr(at, 10'000));
    done = true;
  });
  std::uint64_t offset = 0;
  std::uint64_t good = 0;
  while (!done || offset < total) {
    const OutputPiece piece = read(offset, 300'000);
    ASSERT_GE(piece.offset, offset);
    ASSERT_TRUE(piece.bytes == std::string_view(bytes).substr(piece.offset, piece.bytes.size()))
        << piece.offset << " to " << piece.next << " of " << piece.total;
    good += piece.bytes.size();
    offset = piece.next;
  }
  writer.get();
  EXPECT_EQ(offset, total);
  EXPECT_GE(good, 2'000'000U);
}

// Kills a writer at any instant, and looks whether what is said to be there is there.
TEST_F(OutputTest, AKilledWriterLeavesAConsistentOutput) {
  const std::string bytes = pattern(0, 8'000'000);
  for (int round = 0; round < 30; ++round) {
    remove_output(tasks_.get(), run);
    record_ = RunRecord::create(tasks_.get(), run, "nobody");
    const pid_t writer = fork();
    if (writer == 0) {
      OutputFile file(tasks_.get(), run, record_, 1'000'000);
      for (std::uint64_t at = 0; at < bytes.size(); at += 7'777) file.append(std::string_view(bytes).substr(at, 7'777));
      pause();
    }
    usleep(static_cast<useconds_t>(round) * 300);
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    const std::uint64_t total = read(0, 0).total;
    EXPECT_EQ(total % 7'777 == 0 || total <= 1'000'000 || total == bytes.size(), true) << total;
    const std::uint64_t dropped = check(tasks_.get(), total, everything);
    const std::uint64_t written = total + 7'777;  // at most: the piece under way may have taken its place already
    EXPECT_LE(dropped, written > 1'000'000 ? written - 1'000'000 : 0);
  }
}

TEST_F(OutputTest, WhatTheDiskDoesNotTakeIsCounted) {
  OutputFile file(tasks_.get(), run, record_);
  {
    const FullDisk full(100'000);
    for (std::uint64_t at = 0; at < 1'000'000; at += 3'000) file.append(pattern(at, std::min(at + 3'000, 1'000'000UL)));
  }
  EXPECT_EQ(file.total(), 1'000'000U);
  EXPECT_EQ(check(tasks_.get(), 1'000'000, 4'000), 900'000U);
}

TEST_F(OutputTest, AFullDiskCostsOnlyWhatCameWhileItWasFull) {
  OutputFile file(tasks_.get(), run, record_);
  file.append(pattern(0, 50'000));
  {
    const FullDisk full(60'000);
    for (std::uint64_t at = 50'000; at < 80'000; at += 3'000) file.append(pattern(at, at + 3'000));
  }
  file.append(pattern(80'000, 90'000));
  {
    const FullDisk full(0);
    file.append(pattern(90'000, 90'100));
    EXPECT_NE(file.note(), 0);
  }
  EXPECT_EQ(file.note(), 0);
  EXPECT_EQ(check(tasks_.get(), 90'100, 777), 20'100U);
  file.append(pattern(90'100, 95'000));
  EXPECT_EQ(check(tasks_.get(), 95'000, 777), 20'100U);
  EXPECT_EQ(dropped_output(tasks_.get(), run), (std::vector<OutputRange>{{60'000, 80'000}, {90'000, 90'100}}));
  EXPECT_EQ(file.sync(), 0);
}

TEST_F(OutputTest, AFileThatCannotBeMadeAtFirstIsMadeLater) {
  OutputFile file(tasks_.get(), run, record_);
  std::filesystem::create_directory(folder_.file("task-1.1.out"));
  file.append(pattern(0, 1'000));
  std::filesystem::remove(folder_.file("task-1.1.out"));
  file.append(pattern(1'000, 3'000));
  EXPECT_EQ(check(tasks_.get(), 3'000, 777), 1'000U);
}

TEST_F(OutputTest, HolesAndTheRingGoTogether) {
  EXPECT_TRUE(rc::check("what is not told as dropped is there", [] {
    const transport::TemporaryFolder folder;
    const base::Fd tasks(open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const RunRecord record = RunRecord::create(tasks.get(), run, "nobody");
    OutputFile file(tasks.get(), run, record, 9'000);
    std::uint64_t total = 0;
    const auto portions =
        *rc::gen::container<std::vector<std::uint64_t>>(12, rc::gen::inRange<std::uint64_t>(0, 2'000));
    for (const std::uint64_t portion : portions) {
      std::optional<FullDisk> full;
      if (portion % 3 == 0) full.emplace(4'096 + portion);  // the record can be written
      file.append(pattern(total, total + portion));
      total += portion;
      full.reset();
      check(tasks.get(), total, 1'000);
      RC_ASSERT(!testing::Test::HasFailure());
    }
  }));
}

TEST_F(OutputTest, AFullDiskKeepsWhatItCan) {
  if (mount("none", folder_.path().c_str(), "tmpfs", 0, "size=128k") != 0) GTEST_SKIP() << "may not mount a small disk";
  tasks_.reset(open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  {
    const RunRecord record = RunRecord::create(tasks_.get(), run, "nobody");
    std::optional<OutputFile> file(std::in_place, tasks_.get(), run, record);
    for (std::uint64_t at = 0; at < 1'000'000; at += 1'000) file->append(pattern(at, at + 1'000));
    const std::uint64_t kept = std::filesystem::file_size(folder_.file("task-1.1.out"));
    EXPECT_GT(kept, 64'000U);
    EXPECT_EQ(check(tasks_.get(), 1'000'000, 4'000), 1'000'000 - kept);
    EXPECT_TRUE(record.write_began(run, {}));
    const Outcome outcome{.kind = Outcome::Kind::exited, .code = 3, .result = std::string(64 * 1024, 'r')};
    EXPECT_FALSE(record.write_outcome(outcome));
    EXPECT_EQ(errno, ENOSPC);
    EXPECT_EQ(record.read().outcome->code, 3);
    EXPECT_EQ(record.read_result(), "");  // there was no room for it
    file.reset();
    remove_output(tasks_.get(), run);
    EXPECT_TRUE(record.write_outcome(outcome));
    EXPECT_EQ(record.read_result(), outcome.result);
  }
  tasks_.reset();
  umount2(folder_.path().c_str(), MNT_DETACH);
}

TEST_F(OutputTest, GapsAreKnownOnADiskThatCannotBeWritten) {
  if (mount("none", folder_.path().c_str(), "tmpfs", 0, "") != 0) GTEST_SKIP() << "may not mount a disk";
  tasks_.reset(open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  {
    const RunRecord record = RunRecord::create(tasks_.get(), run, "nobody");
    ASSERT_TRUE(record.write_extent({.capacity = max_output, .total = 4, .gaps = {{0, 4}}}, 1));
  }
  ASSERT_EQ(mount("none", folder_.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, ""), 0);
  EXPECT_EQ(read_output(tasks_.get(), run, 0, everything).dropped, (OutputRange{0, 4}));
  tasks_.reset();
  umount2(folder_.path().c_str(), MNT_DETACH);
}

// As a power cut leaves it: the record of the gap is on disk, and what came after it is not, or not all.
TEST_F(OutputTest, WhatTheRecordTellsOfAndTheFileHasNotIsDropped) {
  OutputFile file(tasks_.get(), run, record_);
  const std::string path = folder_.file(output_name(run));
  {
    const FullDisk full(1000);
    file.append(pattern(0, 1500));
  }
  file.append(pattern(1500, 3000));
  ASSERT_EQ(check(tasks_.get(), 3000, 700), 500U);
  for (const std::uint64_t left : {2000U, 1500U, 400U, 0U}) {
    std::filesystem::resize_file(path, left);
    const std::uint64_t kept = left > 1500 ? left - 500 : std::min<std::uint64_t>(left, 1000);
    for (const std::size_t limit : {std::size_t{100}, std::size_t{700}, everything}) {
      EXPECT_EQ(check(tasks_.get(), 3000, limit), 3000 - kept) << left << " left, read by " << limit;
    }
  }
  std::filesystem::remove(path);
  EXPECT_EQ(check(tasks_.get(), 3000, 700), 3000U);
}

TEST_F(OutputTest, TheEndIsReadAcrossGaps) {
  OutputFile file(tasks_.get(), run, record_);
  file.append("one");
  {
    const FullDisk full(3);
    file.append("two");
  }
  file.append("three");
  EXPECT_EQ(end_of_output(tasks_.get(), run, everything), "one\nthree");
  EXPECT_EQ(end_of_output(tasks_.get(), run, 9), "e\nthree");
  EXPECT_EQ(end_of_output(tasks_.get(), run, 7), "three");
  EXPECT_EQ(end_of_output(tasks_.get(), run, 4), "hree");
  EXPECT_EQ(end_of_output(tasks_.get(), {2, 1}, everything), "");
}

TEST_F(OutputTest, AnOutputWhoseRecordCannotBeOpenedIsNotReadWithoutIt) {
  const RunId other{2, 1};
  std::filesystem::create_symlink("nowhere", folder_.file(record_name(other)));
  EXPECT_THROW(read_output(tasks_.get(), other, 0, everything), std::system_error);
}

TEST_F(OutputTest, AnOutputThatCannotBeOpenedIsAllDropped) {
  std::filesystem::create_directory(folder_.file("task-1.1.out"));
  OutputFile file(tasks_.get(), run, record_);
  file.append("lost");
  file.append(" too");
  EXPECT_EQ(file.total(), 8U);
  EXPECT_EQ(dropped_output(tasks_.get(), run), (std::vector<OutputRange>{{0, 8}}));
}

}  // namespace
}  // namespace duet::task
