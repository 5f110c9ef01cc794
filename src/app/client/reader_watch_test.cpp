#include "app/client/reader_watch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <chrono>

#include <gtest/gtest.h>

#include "duet/base/fd.h"

namespace duet::app {
namespace {

using std::chrono::milliseconds;

bool is_noticed(int output, const std::function<void()>& go) {
  transport::Loop loop;
  bool gone = false;
  const ReaderWatch watch(loop, output, [&gone] { gone = true; });
  loop.turn(loop.now());
  EXPECT_FALSE(gone) << "the reader is still there";
  go();
  const base::TimePoint deadline = loop.now() + std::chrono::seconds(10);
  while (!gone && loop.now() < deadline) loop.turn(deadline);
  return gone;
}

TEST(ReaderWatch, NoticesThatAPipesReaderIsGone) {
  base::Pipe pipe = base::make_pipe();
  EXPECT_TRUE(is_noticed(pipe.write_end.get(), [&] { pipe.read_end.reset(); }));
}

TEST(ReaderWatch, NoticesThatASocketsReaderIsGone) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const base::Fd ours(ends[0]);
  base::Fd theirs(ends[1]);
  EXPECT_TRUE(is_noticed(ours.get(), [&] { theirs.reset(); }));
}

TEST(ReaderWatch, AFileHasNoReader) {
  const base::Fd file(open("/dev/null", O_WRONLY | O_CLOEXEC));
  transport::Loop loop;
  const ReaderWatch watch(loop, file.get(), [] { FAIL(); });
  loop.turn(loop.now());
}

TEST(ReaderWatch, TheProgramEndsAsTheNextWriteWouldEndIt) {
  EXPECT_EXIT(
      {
        signal(SIGPIPE, SIG_DFL);  // whatever was tested before in this process
        ReaderWatch::end_without_reader();
      },
      ::testing::KilledBySignal(SIGPIPE), "");
  EXPECT_EXIT(
      {
        signal(SIGPIPE, SIG_IGN);
        try {
          ReaderWatch::end_without_reader();
        } catch (const std::system_error& error) {
          _exit(error.code().value() == EPIPE ? 0 : 1);
        }
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace duet::app
