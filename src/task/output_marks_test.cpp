#include "task/output_marks.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"
#include "task/output.h"
#include "task/output_file.h"
#include "task/run_record.h"

namespace duet::task {
namespace {

constexpr RunId marked_run{1, 1};
constexpr std::size_t everything = std::size_t{1} << 30U;

class OutputMarksTest : public testing::Test {
 protected:
  void write(std::string_view out, std::string_view err) {
    if (!out.empty()) output_.append(out, Stream::out);
    if (!err.empty()) output_.append(err, Stream::err);
  }
  OutputPiece read(Stream stream, std::uint64_t offset = 0, std::size_t limit = everything) const {
    return read_stream(tasks_.get(), marked_run, stream, offset, limit);
  }
  Stream at(std::uint64_t offset) const { return MarkedStreams(tasks_.get(), marked_run).at(offset).stream; }

  transport::TemporaryFolder folder_;
  base::Fd tasks_{open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  RunRecord record_ = RunRecord::create(tasks_.get(), marked_run, "nobody");
  OutputFile output_{tasks_.get(), marked_run, record_, 64};
};

TEST_F(OutputMarksTest, OutputWithoutMarksIsStdout) {
  write("only", "");
  EXPECT_FALSE(std::filesystem::exists(folder_.file(marks_name(marked_run))));
  EXPECT_EQ(read(Stream::out).bytes, "only");
  EXPECT_EQ(read(Stream::err).bytes, "");
  EXPECT_EQ(read(Stream::err).next, 4U);
}

TEST_F(OutputMarksTest, EachStreamIsReadByItself) {
  write("a1 ", "E1 ");
  write("", "E2 ");
  write("a2 ", "E3");
  EXPECT_EQ(std::filesystem::file_size(folder_.file(marks_name(marked_run))), 3 * 8U)
      << "only where the stream changes";
  const OutputPiece err = read(Stream::err);
  EXPECT_EQ(err.bytes, "E1 E2 E3");
  EXPECT_EQ(err.offset, 3U);
  EXPECT_EQ(err.next, 14U);
  EXPECT_EQ(err.total, 14U);
  EXPECT_EQ(read(Stream::out).bytes, "a1 a2 ");
  EXPECT_EQ(read_output(tasks_.get(), marked_run, 0, everything).bytes, "a1 E1 E2 a2 E3");
}

TEST_F(OutputMarksTest, AnyOffsetAndLimitGiveTheSame) {
  for (int i = 0; i < 4; ++i) write(std::string(1 + static_cast<unsigned>(i), 'o'), "eee");
  for (std::size_t limit = 1; limit < 12; ++limit) {
    std::string all;
    for (std::uint64_t offset = 0; offset < output_.total();) {
      const OutputPiece piece = read(Stream::err, offset, limit);
      EXPECT_LE(piece.bytes.size(), limit);
      ASSERT_GT(piece.next, offset);
      for (std::size_t shown = 0; shown < piece.bytes.size(); ++shown) {
        EXPECT_EQ(at(piece.place_of(shown)), Stream::err);
      }
      all += piece.bytes;
      offset = piece.next;
    }
    EXPECT_EQ(all, std::string(12, 'e')) << limit;
  }
}

TEST_F(OutputMarksTest, WhatWasDroppedIsTold) {
  write(std::string(30, 'o'), std::string(30, 'e'));
  write(std::string(30, 'o'), std::string(30, 'e'));  // 64 are kept: the first 32 and the last 32
  const OutputPiece first = read(Stream::err);
  EXPECT_EQ(first.bytes, "ee");
  const OutputPiece second = read(Stream::err, first.next);
  EXPECT_EQ(second.dropped, (OutputRange{32, 88}));
  EXPECT_EQ(second.bytes, std::string(30, 'e'));
  EXPECT_EQ(second.offset, 90U);
  EXPECT_EQ(read(Stream::out, 32).bytes, "oo");
}

TEST_F(OutputMarksTest, ATornEndAndZerosAreNoMarks) {
  write("out", "err");
  const base::Fd file(openat(tasks_.get(), marks_name(marked_run).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  const std::string zeros(8 * 5 + 3, '\0');
  ASSERT_EQ(::write(file.get(), zeros.data(), zeros.size()), static_cast<ssize_t>(zeros.size()));
  EXPECT_EQ(read(Stream::out).bytes, "out");
  EXPECT_EQ(read(Stream::err).bytes, "err");
}

TEST_F(OutputMarksTest, BehindTheMostTheRestIsMixed) {
  OutputMarks marks(tasks_.get(), marked_run, 3);
  for (std::uint64_t offset = 0; offset < 10; ++offset) {
    marks.mark(offset, offset % 2 == 0 ? Stream::out : Stream::err);
  }
  EXPECT_EQ(at(0), Stream::out);
  EXPECT_EQ(at(1), Stream::err);
  EXPECT_EQ(at(2), Stream::out);
  for (std::uint64_t offset = 3; offset < 10; ++offset) EXPECT_EQ(at(offset), Stream::mixed);
}

// Without its mark it would be taken for that of the other stream.
TEST_F(OutputMarksTest, WhatCannotBeMarkedIsDroppedAndTold) {
  const std::string marks = folder_.file(marks_name(marked_run));
  std::filesystem::create_symlink("nowhere", marks);  // it is not followed
  write("out", "lost");
  std::filesystem::remove(marks);
  write("out", "");
  EXPECT_EQ(read(Stream::out).bytes, "out");
  EXPECT_EQ(read(Stream::out, 3).bytes, "out");
  EXPECT_EQ(read(Stream::out, 3).dropped, (OutputRange{3, 7}));
  EXPECT_EQ(read(Stream::err).bytes, "");
  EXPECT_EQ(read(Stream::err).dropped, (OutputRange{3, 7}));
  write("", "err");
  EXPECT_EQ(read(Stream::err).bytes, "err");
  EXPECT_EQ(read(Stream::out, 7).bytes, "out");
}

TEST_F(OutputMarksTest, AMarkThatIsOnlyHalfThereIsWrittenAnew) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  OutputMarks marks(tasks_.get(), marked_run);
  const rlimit half{.rlim_cur = 12, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &half);
  EXPECT_EQ(marks.mark(1, Stream::err), 0);
  EXPECT_NE(marks.mark(2, Stream::out), 0);
  EXPECT_NE(marks.mark(3, Stream::out), 0);
  EXPECT_EQ(marks.mark(4, Stream::err), 0) << "as before";
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(at(3), Stream::err);
  EXPECT_EQ(marks.mark(5, Stream::out), 0);
  EXPECT_EQ(at(4), Stream::err);
  EXPECT_EQ(at(5), Stream::out);
}

TEST_F(OutputMarksTest, AGapIsToldWhateverWasInIt) {
  write("", "ee");
  write(std::string(100, 'o'), "EE");  // 64 are kept: the first 32 and the last 32
  EXPECT_EQ(read(Stream::err).bytes, "ee");
  const OutputPiece second = read(Stream::err, 2);
  EXPECT_EQ(second.dropped, (OutputRange{32, 72}));
  EXPECT_EQ(second.bytes, "EE");
  EXPECT_EQ(second.offset, 102U);
}

TEST_F(OutputMarksTest, EachGapIsToldByItself) {
  OutputFile output{tasks_.get(), marked_run, record_, 1000};
  output.append("oooooooooo");
  output.append("eeeeeeeeee", Stream::err);
  output.append("oooooooooo");
  output.append("eeeeeeeeee", Stream::err);
  Extent extent{.capacity = 1000, .total = 40};
  for (const OutputRange gap : {OutputRange{2, 4}, OutputRange{12, 14}, OutputRange{22, 24}}) extent.drop(gap);
  ASSERT_TRUE(record_.write_extent(extent, 1));
  std::vector<OutputRange> told;
  std::string all;
  for (std::uint64_t offset = 0; offset < 40;) {
    const OutputPiece piece = read(Stream::err, offset);
    ASSERT_GT(piece.next, offset);
    if (piece.dropped) told.push_back(*piece.dropped);
    all += piece.bytes;
    offset = piece.next;
  }
  EXPECT_EQ(told, extent.gaps);
  EXPECT_EQ(all, std::string(18, 'e'));
}

}  // namespace
}  // namespace duet::task
