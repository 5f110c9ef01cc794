#include "duet/transport/fd_channel.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "duet/transport/channel_recorder_test.h"
#include "duet/transport/refused_watches_test.h"

namespace duet::transport {
namespace {

struct Setting {
  base::VirtualClock clock;
  Loop loop{clock};
  base::Fd far;  // the other end of a socket
  std::unique_ptr<FdChannel> channel;
  std::optional<ChannelRecorder> end;

  void turn(int times = 3) {
    for (int i = 0; i < times; ++i) loop.turn(loop.now());
  }
  void write_far(std::string_view text) { EXPECT_EQ(write(far.get(), text.data(), text.size()), ssize_t(text.size())); }
};

struct OverSocket : Setting {
  OverSocket() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    far.reset(ends[0]);
    near_number = ends[1];
    channel = std::make_unique<FdChannel>(loop, base::Fd(ends[1]));
    end.emplace(*channel);
  }
  int near_number = -1;
};

struct OverPipes : Setting {
  OverPipes() {
    base::Pipe in = base::make_pipe();
    base::Pipe out = base::make_pipe();
    far = std::move(in.write_end);
    far_input = std::move(out.read_end);
    channel = std::make_unique<FdChannel>(loop, std::move(in.read_end), std::move(out.write_end));
    end.emplace(*channel);
  }
  base::Fd far_input;
};

std::string read_all(int fd) {
  std::array<char, 4096> room;
  std::string text;
  base::set_nonblocking(fd, true);
  for (ssize_t count = 0; (count = read(fd, room.data(), room.size())) > 0;) {
    text.append(room.data(), static_cast<std::size_t>(count));
  }
  return text;
}

TEST(FdChannel, CarriesBytesOverASocketWithoutTouchingItsFlags) {
  OverSocket s;
  s.write_far("hello");
  s.turn();
  EXPECT_EQ(s.end->text, "hello");
  EXPECT_EQ(s.channel->write("answer").count, 6U);
  EXPECT_EQ(read_all(s.far.get()), "answer");
  EXPECT_EQ(fcntl(s.channel->input(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(FdChannel, CarriesBytesOverPipes) {
  OverPipes s;
  s.write_far("hello");
  s.turn();
  EXPECT_EQ(s.end->text, "hello");
  EXPECT_EQ(s.channel->write("answer").count, 6U);
  EXPECT_EQ(read_all(s.far_input.get()), "answer");
}

template <typename Over>
class FdChannelOver : public testing::Test {};
using Kinds = testing::Types<OverSocket, OverPipes>;
TYPED_TEST_SUITE(FdChannelOver, Kinds, );

TYPED_TEST(FdChannelOver, ReadingThatIsNotWantedWaits) {
  TypeParam s;
  s.channel->want(false, false);
  s.write_far("hello");
  s.turn();
  EXPECT_EQ(s.end->text, "");
  s.channel->want(true, false);
  s.turn();
  EXPECT_EQ(s.end->text, "hello");
}

TYPED_TEST(FdChannelOver, AReadWithNothingThereDoesNotWait) {
  TypeParam s;
  s.end->on_readable();
  EXPECT_EQ(s.end->empty_reads, 1);
}

TYPED_TEST(FdChannelOver, TheEndOfInputIsTold) {
  TypeParam s;
  s.write_far("last");
  s.far.reset();
  s.channel->want(true, false);
  s.turn();
  EXPECT_EQ(s.end->text, "last");
  EXPECT_TRUE(s.end->ended);
}

TYPED_TEST(FdChannelOver, AClosedChannelIsNotCalledAndDoesNothing) {
  TypeParam s;
  s.write_far("hello");
  s.channel->close();
  s.channel->want(true, true);
  s.turn();
  EXPECT_EQ(s.end->text, "");
  EXPECT_EQ(s.channel->write("x").state, IoResult::State::broken);
}

TEST(FdChannel, ASocketThatIsFullSaysWhenItCanTakeMore) {
  OverSocket s;
  EXPECT_GT(fill(*s.channel), 0U);
  s.channel->want(true, true);
  s.turn();
  EXPECT_EQ(s.end->writable, 0);
  read_all(s.far.get());
  s.turn();
  EXPECT_EQ(s.end->writable, 1);
}

TEST(FdChannel, APipeThatIsFullSaysWhenItCanTakeMore) {
  OverPipes s;
  EXPECT_GT(fill(*s.channel), 0U);
  s.channel->want(true, true);
  s.turn();
  EXPECT_EQ(s.end->writable, 0);
  s.write_far("read meanwhile");
  s.turn();
  EXPECT_EQ(s.end->text, "read meanwhile");
  read_all(s.far_input.get());
  s.turn();
  EXPECT_EQ(s.end->writable, 1);
}

TEST(FdChannel, AGonePeerIsAFailedWriteAndNoSignal) {
  OverSocket s;
  s.far.reset();
  EXPECT_EQ(s.channel->write("x").state, IoResult::State::broken);
  EXPECT_EQ(s.channel->write("x").error, EPIPE);
}

TEST(FdChannel, APipeNobodyReadsIsAFailedWriteAndNoSignal) {
  const auto before = signal(SIGPIPE, SIG_DFL);
  OverPipes s;
  s.far_input.reset();
  EXPECT_EQ(s.channel->write("x").state, IoResult::State::broken);
  EXPECT_EQ(s.channel->write("x").error, EPIPE);
  signal(SIGPIPE, before);
}

TEST(FdChannel, APausedSocketHearsThatItsPeerIsGone) {
  OverSocket s;
  s.channel->want(false, false);
  s.turn();
  EXPECT_EQ(s.end->hangups, 0);
  s.far.reset();
  s.turn();
  EXPECT_EQ(s.end->hangups, 1);
}

TEST(FdChannel, AHalfCloseIsNoHangup) {
  OverSocket s;
  shutdown(s.far.get(), SHUT_WR);
  s.turn();
  EXPECT_TRUE(s.end->ended);
  EXPECT_EQ(s.end->hangups, 0);
  EXPECT_EQ(s.channel->write("answer").count, 6U);
}

TEST(FdChannel, APausedPipeWhoseWriterIsGoneDoesNotSpin) {
  OverPipes s;
  s.channel->want(false, false);
  s.far.reset();
  s.turn();
  EXPECT_EQ(s.end->hangups, 0);
  EXPECT_FALSE(s.end->ended);
  s.channel->want(true, false);
  s.turn();
  EXPECT_TRUE(s.end->ended);
}

TEST(FdChannel, AFullPipeWhoseReaderIsGoneFailsTheNextWrite) {
  OverPipes s;
  fill(*s.channel);
  s.channel->want(true, true);
  s.far_input.reset();
  s.turn();
  EXPECT_EQ(s.end->writable, 1);
}

/// Closes the channel as soon as it hears anything.
struct Closer final : Channel::Listener {
  explicit Closer(Channel& closed) : channel(closed) { channel.open(*this); }
  void on_readable() override { close(); }
  void on_writable() override { close(); }
  void on_hangup() override { close(); }
  void close() {
    ++calls;
    channel.close();
  }
  Channel& channel;
  int calls = 0;
};

TEST(FdChannel, MayBeClosedFromItsOwnCall) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  Setting s;
  s.far.reset(ends[0]);
  s.channel = std::make_unique<FdChannel>(s.loop, base::Fd(ends[1]));
  Closer closer(*s.channel);
  s.channel->want(true, true);
  s.write_far("both readable and writable");
  s.turn();
  EXPECT_EQ(closer.calls, 1);
}

// A child between fork and exec holds every descriptor of its parent, and with it what epoll knows of it.
TEST(FdChannel, IsNotCalledAfterItWasClosedThoughAChildHoldsItsDescriptor) {
  OverSocket s;
  const base::Fd held_by_child = base::duplicate(s.near_number);
  s.channel.reset();
  s.end.reset();
  s.write_far("for nobody");
  s.turn();
}

TEST(ThreadsFdChannel, OneThatCannotBeWatchedHasHungUp) {
  on_own_thread([] {
    Setting s;
    if (!refuse_watches()) GTEST_SKIP() << "without seccomp";
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    s.far.reset(ends[0]);
    s.channel = std::make_unique<FdChannel>(s.loop, base::Fd(ends[1]));
    s.end.emplace(*s.channel);
    EXPECT_EQ(s.end->hangups, 0) << "nobody is called inside a call of his own";
    s.turn();
    EXPECT_EQ(s.end->hangups, 1);
  });
}

}  // namespace
}  // namespace duet::transport
