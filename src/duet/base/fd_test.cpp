#include "duet/base/fd.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

namespace duet::base {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

TEST(Fd, ClosesWhatItOwns) {
  Pipe pipe = make_pipe();
  const int number = pipe.read_end.get();
  EXPECT_TRUE(is_open(number));
  pipe.read_end.reset();
  EXPECT_FALSE(is_open(number));
  EXPECT_FALSE(pipe.read_end);
  EXPECT_EQ(pipe.read_end.get(), -1);
}

TEST(Fd, MovingLeavesNothingBehind) {
  Pipe pipe = make_pipe();
  const int number = pipe.read_end.get();
  const int other = pipe.write_end.get();
  {
    Fd moved(std::move(pipe.read_end));
    EXPECT_EQ(moved.get(), number);
    moved = std::move(pipe.write_end);
    EXPECT_FALSE(is_open(number));
    EXPECT_EQ(moved.get(), other);
  }
  EXPECT_FALSE(is_open(other));
}

TEST(Fd, ReleaseGivesTheDescriptorAway) {
  Pipe pipe = make_pipe();
  const Fd kept(pipe.read_end.release());
  pipe.read_end.reset();
  EXPECT_TRUE(is_open(kept.get()));
}

TEST(Fd, ClosingKeepsErrno) {
  Fd stale(1'000'000);
  errno = ENOSPC;
  stale.reset();
  EXPECT_EQ(errno, ENOSPC);
}

TEST(CheckCall, ThrowsTheErrorOfTheSystem) {
  EXPECT_EQ(check_call(7, "seven"), 7);
  errno = EMFILE;
  try {
    check_call(-1, "open a door");
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::too_many_files_open);
    EXPECT_NE(std::string_view(error.what()).find("open a door"), std::string_view::npos);
  }
}

TEST(Duplicate, IsCloseOnExecAndNotAStandardDescriptor) {
  const Fd copy = duplicate(STDERR_FILENO);
  EXPECT_GT(copy.get(), 2);
  EXPECT_TRUE(::fcntl(copy.get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_THROW(duplicate(-1), std::system_error);
}

TEST(MakePipe, IsCloseOnExecAndTakesFlags) {
  const Pipe pipe = make_pipe(O_NONBLOCK);
  for (const Fd* end : {&pipe.read_end, &pipe.write_end}) {
    EXPECT_TRUE(::fcntl(end->get(), F_GETFD) & FD_CLOEXEC);
    EXPECT_TRUE(::fcntl(end->get(), F_GETFL) & O_NONBLOCK);
  }
}

TEST(SetNonblocking, GoesBothWays) {
  const Pipe pipe = make_pipe();
  set_nonblocking(pipe.read_end.get(), true);
  EXPECT_TRUE(::fcntl(pipe.read_end.get(), F_GETFL) & O_NONBLOCK);
  set_nonblocking(pipe.read_end.get(), false);
  EXPECT_FALSE(::fcntl(pipe.read_end.get(), F_GETFL) & O_NONBLOCK);
  EXPECT_THROW(set_nonblocking(-1, true), std::system_error);
}

void write_much(bool blocks) {
  Pipe pipe = make_pipe();
  set_nonblocking(pipe.write_end.get(), !blocks);
  const std::string much(1 << 20, 'x');
  std::string came;
  std::thread reader([&] {
    std::array<char, 65536> room;
    for (ssize_t count = 0; (count = ::read(pipe.read_end.get(), room.data(), room.size())) > 0;)
      came.append(room.data(), static_cast<std::size_t>(count));
  });
  EXPECT_TRUE(write_all(pipe.write_end.get(), much));
  pipe.write_end.reset();
  reader.join();
  EXPECT_EQ(came, much);
}

TEST(WriteAll, WritesInAsManyPortionsAsItTakes) { write_much(true); }

TEST(WriteAll, WaitsForADescriptorThatDoesNotBlock) { write_much(false); }

TEST(WriteAll, SaysWhyNot) {
  EXPECT_TRUE(write_all(-1, ""));
  EXPECT_FALSE(write_all(-1, "x"));
  EXPECT_EQ(errno, EBADF);
}

/// Runs in a child that was "started" without the descriptors in `closed`; its exit code says what is wrong.
int check_standard_descriptors(const std::vector<int>& closed) {
  for (const int fd : closed) ::close(fd);
  const StandardDescriptors found = ensure_standard_descriptors();
  for (int fd = 0; fd <= 2; ++fd) {
    const bool expected = std::find(closed.begin(), closed.end(), fd) != closed.end();
    if (found.was_closed(fd) != expected) return 10 + fd;
    if (!is_open(fd)) return 20 + fd;
    if (expected && fd != 0 && ::write(fd, "x", 1) != 1) return 30 + fd;
  }
  char byte = 0;
  if (found.was_closed(0) && ::read(0, &byte, 1) != 0) return 40;
  return 0;
}

TEST(EnsureStandardDescriptors, FillsTheGapsAndRemembersThem) {
  for (const std::vector<int>& closed : std::vector<std::vector<int>>{{}, {0}, {1}, {2}, {0, 2}, {1, 2}, {0, 1, 2}}) {
    const pid_t child = check_call(::fork(), "fork");
    if (child == 0) ::_exit(check_standard_descriptors(closed));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "closed: " << testing::PrintToString(closed);
  }
}

}  // namespace
}  // namespace duet::base
