#include "duet/transport/stdio.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "duet/transport/await_test.h"
#include "duet/transport/channel_recorder_test.h"
#include "duet/transport/sentinel.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::transport {
namespace {

std::pair<base::Fd, base::Fd> socket_pair() {
  std::array<int, 2> ends{};
  base::check_call(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), "socketpair");
  return {base::Fd(ends[0]), base::Fd(ends[1])};
}

int flags_of(int fd) { return fcntl(fd, F_GETFL); }

std::string read_some(int fd) {
  std::array<char, 4096> room;
  const ssize_t count = read(fd, room.data(), room.size());
  return count > 0 ? std::string(room.data(), static_cast<std::size_t>(count)) : std::string();
}

std::string read_all(int fd) {
  base::set_nonblocking(fd, true);
  std::string text;
  for (std::string some = read_some(fd); !some.empty(); some = read_some(fd)) text += some;
  return text;
}

/// A process's two standard descriptors, of which somebody else holds copies too.
struct Setting {
  Setting(const base::Fd& input, const base::Fd& output) {
    channel.emplace(loop, base::duplicate(input.get()), base::duplicate(output.get()));
    end.emplace(*channel);
  }
  void turn(int times = 3) {
    for (int i = 0; i < times; ++i) loop.turn(loop.now());
  }

  base::VirtualClock clock;
  Loop loop{clock};
  std::optional<StdioChannel> channel;
  std::optional<ChannelRecorder> end;
};

TEST(Stdio, SpeaksOverPipesAndLeavesTheirFlagsAlone) {
  const base::Pipe in = base::make_pipe();
  const base::Pipe out = base::make_pipe();
  const int input_flags = flags_of(in.read_end.get());
  const int output_flags = flags_of(out.write_end.get());
  Setting s(in.read_end, out.write_end);
  EXPECT_EQ(write(in.write_end.get(), "hello", 5), 5);
  s.turn();
  EXPECT_EQ(s.end->text, "hello");
  EXPECT_EQ(s.channel->write("answer").count, 6U);
  EXPECT_EQ(read_some(out.read_end.get()), "answer");
  EXPECT_EQ(flags_of(in.read_end.get()), input_flags);
  EXPECT_EQ(flags_of(out.write_end.get()), output_flags);
}

TEST(Stdio, SpeaksOverASocketAndLeavesItsFlagsAlone) {
  const auto [far, near] = socket_pair();
  const int flags = flags_of(near.get());
  Setting s(near, near);
  EXPECT_EQ(write(far.get(), "hello", 5), 5);
  s.turn();
  EXPECT_EQ(s.end->text, "hello");
  EXPECT_EQ(s.channel->write("answer").count, 6U);
  EXPECT_EQ(read_some(far.get()), "answer");
  EXPECT_GT(fill(*s.channel), 0U);  // comes back although nobody reads
  EXPECT_EQ(flags_of(near.get()), flags);
}

TEST(Stdio, ReadsAFileToItsEndAndWritesToAFile) {
  const TemporaryFolder folder;
  const base::Fd file(open(folder.file("session").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(pwrite(file.get(), "all of it", 9, 0), 9);
  const base::Fd output(open(folder.file("output").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  Setting s(file, output);
  s.turn();
  EXPECT_EQ(s.end->text, "all of it");
  EXPECT_TRUE(s.end->ended);
  EXPECT_EQ(s.channel->write("answer").count, 6U);
  char text[7] = {};
  EXPECT_EQ(pread(output.get(), text, 6, 0), 6);
  EXPECT_STREQ(text, "answer");
}

TEST(Stdio, NothingIsThereInDevNull) {
  const base::Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  Setting s(null, null);
  s.turn();
  EXPECT_TRUE(s.end->ended);
  EXPECT_EQ(s.channel->write("answer").count, 6U);
}

TEST(Stdio, AStdinThatSomebodyMadeNonBlockingIsWaitedFor) {
  const base::Pipe in = base::make_pipe(O_NONBLOCK);
  const base::Pipe out = base::make_pipe();
  Setting s(in.read_end, out.write_end);
  s.end->on_readable();
  EXPECT_EQ(s.end->empty_reads, 1);
  s.turn();
  EXPECT_EQ(s.end->empty_reads, 1);  // asked first, from now on
  EXPECT_EQ(write(in.write_end.get(), "hello", 5), 5);
  s.turn();
  EXPECT_EQ(s.end->text, "hello");
  EXPECT_NE(flags_of(in.read_end.get()) & O_NONBLOCK, 0);
}

TEST(Stdio, AFullStdoutDoesNotBlockAndSaysWhenItHasRoom) {
  const base::Pipe in = base::make_pipe();
  const base::Pipe out = base::make_pipe();
  Setting s(in.read_end, out.write_end);
  EXPECT_GT(fill(*s.channel), 0U);
  s.channel->want(true, true);
  EXPECT_EQ(write(in.write_end.get(), "read meanwhile", 14), 14);
  s.turn();
  EXPECT_EQ(s.end->writable, 0);
  EXPECT_EQ(s.end->text, "read meanwhile");
  read_all(out.read_end.get());
  s.turn();
  EXPECT_EQ(s.end->writable, 1);
}

TEST(Stdio, AFullStdoutIsWaitedForWhileStdinIsNotWanted) {
  const base::Pipe in = base::make_pipe();
  const base::Pipe out = base::make_pipe();
  Setting s(in.read_end, out.write_end);
  fill(*s.channel);
  EXPECT_EQ(write(in.write_end.get(), "later", 5), 5);
  s.channel->want(false, true);
  s.turn();
  EXPECT_EQ(s.end->text, "");
  read_all(out.read_end.get());
  s.turn();
  EXPECT_EQ(s.end->writable, 1);
}

/// While it lives the process is not allowed to open what belongs to root.
class WithoutRights {
 public:
  WithoutRights() { EXPECT_EQ(seteuid(geteuid() == 0 ? 65534 : geteuid()), 0); }
  ~WithoutRights() { EXPECT_EQ(seteuid(getuid()), 0); }
};

TEST(Stdio, AStdoutThatCannotBeOpenedAnewIsWrittenInPortionsThatCannotBlock) {
  const base::Pipe in = base::make_pipe();
  const base::Pipe out = base::make_pipe();
  ASSERT_EQ(fchmod(out.write_end.get(), 0), 0);
  std::optional<Setting> s;
  {
    const WithoutRights nobody;
    s.emplace(in.read_end, out.write_end);
  }
  EXPECT_EQ(s->channel->write(std::string(100'000, 'x')).count, std::size_t{PIPE_BUF});
  EXPECT_GT(fill(*s->channel), 0U);
  EXPECT_EQ(flags_of(out.write_end.get()) & O_NONBLOCK, 0);
  s->channel->want(true, true);
  s->turn();
  EXPECT_EQ(s->end->writable, 0);
  read_all(out.read_end.get());
  s->turn();
  EXPECT_EQ(s->end->writable, 1);
}

TEST(Stdio, AStdoutNobodyReadsFailsAndRaisesNoSignal) {
  const auto before = signal(SIGPIPE, SIG_DFL);
  const base::Pipe in = base::make_pipe();
  base::Pipe out = base::make_pipe();
  out.read_end.reset();
  Setting s(in.read_end, out.write_end);
  const IoResult moved = s.channel->write("x");
  EXPECT_EQ(moved.state, IoResult::State::broken);
  EXPECT_EQ(moved.error, EPIPE);
  signal(SIGPIPE, before);
}

TEST(Stdio, AStdinThatCannotBeReadFails) {
  const TemporaryFolder folder;
  const base::Fd place(open(folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const base::Pipe out = base::make_pipe();
  Setting s(place, out.write_end);
  s.turn();
  EXPECT_EQ(s.end->error, EISDIR);
}

TEST(Stdio, AClosedChannelIsNotCalledAndClosesItsDescriptors) {
  base::Pipe in = base::make_pipe();
  base::Pipe out = base::make_pipe();
  EXPECT_EQ(write(in.write_end.get(), "hello", 5), 5);
  Setting s(in.read_end, out.write_end);
  fill(*s.channel);
  s.channel->want(true, true);
  s.channel->close();
  s.channel->want(true, true);
  s.turn();
  EXPECT_EQ(s.end->text, "");
  EXPECT_EQ(s.channel->input(), -1);
  out.write_end.reset();
  read_all(out.read_end.get());
  char byte = 0;
  EXPECT_EQ(read(out.read_end.get(), &byte, 1), 0);  // the last writer is gone
}

TEST(ThreadsStdio, ATerminalThatIsClosedIsAnEnd) {
  base::Fd master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_EQ(grantpt(master.get()), 0);
  ASSERT_EQ(unlockpt(master.get()), 0);
  const base::Fd terminal(open(ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(terminal);
  Setting s(terminal, terminal);
  const Sentinel sentinel(s.loop, {.signals = {},
                                   .on_signal = [](int) {},
                                   .patience = test_patience,
                                   .on_overdue = [] {},
                                   .input = s.channel->input()});
  const pid_t loop_thread = gettid();
  std::thread closer([&] {
    EXPECT_TRUE(await_asleep(loop_thread));
    master.reset();
  });
  s.loop.turn();  // in a read that blocks
  closer.join();
  EXPECT_EQ(s.end->error, 0);
  EXPECT_TRUE(s.end->ended);
}

TEST(StdoutGuard, WhatIsPrintedGoesToStderrAndTheRealStdoutIsOurs) {
  const base::Fd kept = base::duplicate(STDOUT_FILENO);
  const base::Pipe out = base::make_pipe();
  dup2(out.write_end.get(), STDOUT_FILENO);
  const base::Fd real = take_stdout();
  EXPECT_EQ(write(real.get(), "a frame", 7), 7);
  struct stat now {};
  struct stat error {};
  fstat(STDOUT_FILENO, &now);
  fstat(STDERR_FILENO, &error);
  dup2(kept.get(), STDOUT_FILENO);
  EXPECT_EQ(read_some(out.read_end.get()), "a frame");
  EXPECT_EQ(now.st_ino, error.st_ino);
  EXPECT_EQ(now.st_dev, error.st_dev);
  EXPECT_NE(fcntl(real.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_GT(real.get(), STDERR_FILENO);
}

}  // namespace
}  // namespace duet::transport
