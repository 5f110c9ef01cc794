#include "duet/transport/tls_farewell.h"

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "duet/base/clock.h"
#include "duet/transport/fd_channel.h"

namespace duet::transport {
namespace {

using std::chrono::seconds;

struct TlsFarewellTest : testing::Test {
  TlsFarewellTest() {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    near = base::Fd(ends[0]);
    far = base::Fd(ends[1]);
  }
  void begin(std::string last_bytes) {
    see_off(loop, std::make_unique<FdChannel>(loop, std::move(near)), std::move(last_bytes),
            std::exchange(place, nullptr));
  }
  std::string received() const {
    std::string text(100, '\0');
    const ssize_t count = recv(far.get(), text.data(), text.size(), MSG_DONTWAIT);
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return text;
  }
  void turn_twice() {
    loop.turn(seconds(0));
    loop.turn(seconds(0));  // what the first one has deferred
  }

  base::VirtualClock clock;
  Loop loop{clock};
  base::Fd near;
  base::Fd far;
  std::shared_ptr<int> place = std::make_shared<int>(0);
  std::weak_ptr<int> kept = place;
};

TEST_F(TlsFarewellTest, ThePeerGetsTheLastBytesAndTheEnd) {
  begin("last");
  EXPECT_EQ(received(), "last");
  EXPECT_EQ(received(), "");
  turn_twice();
  EXPECT_FALSE(kept.expired()) << "the peer has not ended";
  far.reset();
  turn_twice();
  EXPECT_TRUE(kept.expired());
}

TEST_F(TlsFarewellTest, APeerThatDoesNotEndIsWaitedForOneSecond) {
  begin("last");
  turn_twice();
  EXPECT_FALSE(kept.expired());
  clock.advance(seconds(1));
  turn_twice();
  EXPECT_TRUE(kept.expired());
}

TEST_F(TlsFarewellTest, ThePeerMayEndInTheTurnInWhichTheSecondIsOver) {
  begin("last");
  turn_twice();
  far.reset();
  clock.advance(seconds(1));
  turn_twice();
  EXPECT_TRUE(kept.expired());
}

}  // namespace
}  // namespace duet::transport
