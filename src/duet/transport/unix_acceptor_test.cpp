#include "duet/transport/unix_acceptor.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/few_descriptors_test.h"
#include "duet/base/log_tape_test.h"
#include "duet/transport/refused_watches_test.h"
#include "duet/transport/temporary_folder_test.h"
#include "duet/transport/unix_socket.h"

namespace duet::transport {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// Keeps whoever comes.
struct Host final : Acceptor::Listener {
  bool has_room() override {
    if (when_asked) when_asked();
    return channels.size() < room;
  }
  void admit(std::unique_ptr<Channel> channel, const PeerIdentity& identity) override {
    channels.push_back(std::move(channel));
    last = identity;
  }
  std::size_t room = 100;
  std::function<void()> when_asked;
  std::vector<std::unique_ptr<Channel>> channels;
  PeerIdentity last;
};

struct AcceptorSetting {
  AcceptorSetting() {
    acceptor->open(host);
    see_everything_once();
  }
  // Without descriptors a sanitizer cannot look at objects of a kind that is new to it.
  void see_everything_once() {
    const base::Fd client = connect();
    turn();
    loop.after(1s, [] {}).cancel();
    host.channels.clear();
  }
  base::Fd connect() const { return connect_unix(path); }
  void turn(int times = 1) {
    for (int i = 0; i < times; ++i) loop.turn(loop.now());
  }
  std::size_t accepted() const { return host.channels.size(); }

  TemporaryFolder folder;
  std::string path = folder.file("socket");
  base::VirtualClock clock;
  Loop loop{clock};
  base::LogTape tape;
  Host host;
  std::optional<base::FewDescriptors> limit;
  std::unique_ptr<Acceptor> acceptor = unix_acceptor(loop, tape.log(), path);
};

TEST(Acceptor, HandsOnEveryConnection) {
  AcceptorSetting s;
  std::vector<base::Fd> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(s.connect());
  s.turn(6);
  EXPECT_EQ(s.accepted(), 5U);
  EXPECT_EQ(s.host.last.pid, getpid());
  EXPECT_EQ(s.host.last.uid, geteuid());
}

TEST(Acceptor, WithoutDescriptorsItPausesAndTriesAgain) {
  AcceptorSetting s;
  const base::Fd client = s.connect();
  s.limit.emplace();
  s.turn();
  EXPECT_EQ(s.accepted(), 0U);
  s.clock.advance(100ms);
  s.turn();  // watches again
  s.turn();  // and fails again
  EXPECT_EQ(s.accepted(), 0U);
  s.limit.reset();
  s.turn();
  EXPECT_EQ(s.accepted(), 0U);  // it is paused, so it does not spin
  s.clock.advance(100ms);
  s.turn(2);
  EXPECT_EQ(s.accepted(), 1U);
}

TEST(Acceptor, GoesOnAtOnceWhenADescriptorBecameFree) {
  AcceptorSetting s;
  const base::Fd client = s.connect();
  s.limit.emplace();
  s.turn();
  s.limit.reset();
  s.acceptor->resume();
  s.acceptor->resume();
  s.turn();
  EXPECT_EQ(s.accepted(), 1U);
  s.clock.advance(1s);
  s.turn();
  EXPECT_EQ(s.accepted(), 1U);
}

TEST(Acceptor, WithoutRoomClientsWaitOutside) {
  AcceptorSetting s;
  s.host.room = 1;
  const base::Fd first = s.connect();
  const base::Fd second = s.connect();
  s.turn(5);
  EXPECT_EQ(s.accepted(), 1U);
  s.host.channels.clear();
  s.turn(5);
  EXPECT_EQ(s.accepted(), 0U) << "it was not told that there is room";
  s.acceptor->resume();
  s.turn(5);
  EXPECT_EQ(s.accepted(), 1U);
}

TEST(Acceptor, MayBeClosedWhenItAsksForRoom) {
  AcceptorSetting s;
  s.host.room = 0;
  s.host.when_asked = [&] { s.acceptor->close(); };
  const base::Fd client = s.connect();
  s.turn(2);
  s.clock.advance(1s);
  s.turn(2);
  EXPECT_EQ(s.accepted(), 0U);
}

TEST(Acceptor, MayGoWhileItIsPaused) {
  AcceptorSetting s;
  {
    const auto acceptor = unix_acceptor(s.loop, s.tape.log(), s.folder.file("other"));
    acceptor->open(s.host);
    const base::Fd client = connect_unix(s.folder.file("other"));
    s.limit.emplace();
    s.turn();
    s.limit.reset();
  }
  s.clock.advance(1s);
  s.turn(2);
  EXPECT_EQ(s.accepted(), 0U);
}

TEST(Acceptor, AConnectionThatIsGoneBeforeItWasAcceptedIsWeather) {
  AcceptorSetting s;
  s.connect();
  const base::Fd client = s.connect();
  s.turn(3);
  EXPECT_EQ(s.accepted(), 2U);
}

TEST(Acceptor, OwnsTheFileOfItsSocket) {
  AcceptorSetting s;
  EXPECT_TRUE(s.acceptor->is_reachable());
  EXPECT_THROW(unix_acceptor(s.loop, s.tape.log(), s.path), std::system_error);
  s.acceptor->close();
  s.acceptor->close();
  EXPECT_FALSE(fs::exists(s.path));
  EXPECT_TRUE(s.acceptor->is_reachable()) << "nobody is to reach it";
  s.acceptor->restore();
  EXPECT_FALSE(fs::exists(s.path));
  s.acceptor = unix_acceptor(s.loop, s.tape.log(), s.path);
  EXPECT_TRUE(fs::is_socket(s.path));
  s.acceptor.reset();
  EXPECT_FALSE(fs::exists(s.path));
}

TEST(Acceptor, RestoresItsFileAndForgetsNobodyWhoHadCome) {
  AcceptorSetting s;
  const base::Fd before = s.connect();
  fs::remove(s.path);
  EXPECT_FALSE(s.acceptor->is_reachable());
  s.acceptor->restore();
  EXPECT_TRUE(s.acceptor->is_reachable());
  EXPECT_EQ(s.accepted(), 1U);
  const base::Fd after = s.connect();
  s.turn();
  EXPECT_EQ(s.accepted(), 2U);
}

bool was_let_go(const base::Fd& client) {
  char byte = 0;
  return recv(client.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

TEST(Acceptor, RestoringItsFileLetsNobodyInForWhomThereIsNoRoomAndLosesNobody) {
  AcceptorSetting s;
  s.host.room = 1;
  std::vector<base::Fd> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(s.connect());
  for (int i = 0; i < 2; ++i) {  // the second time while clients still wait at the first socket
    fs::remove(s.path);
    s.acceptor->restore();
    EXPECT_TRUE(s.acceptor->is_reachable());
    EXPECT_EQ(s.accepted(), 1U);
    clients.push_back(s.connect());
  }
  for (const base::Fd& client : clients) {
    s.turn(5);
    EXPECT_EQ(s.accepted(), 1U);
    EXPECT_FALSE(was_let_go(client));
    s.host.channels.clear();
    EXPECT_TRUE(was_let_go(client)) << "they come in as they came";
    s.acceptor->resume();
  }
  fs::remove(s.path);
  EXPECT_FALSE(s.acceptor->is_reachable());
}

TEST(Acceptor, RestoringItsFileMayEndIt) {
  AcceptorSetting s;
  const base::Fd client = s.connect();
  fs::remove(s.path);
  s.host.when_asked = [&] { s.acceptor->close(); };
  s.acceptor->restore();
  EXPECT_EQ(s.accepted(), 0U);
  EXPECT_FALSE(fs::exists(s.path));
  s.clock.advance(1s);
  s.turn(2);
}

TEST(ThreadsAcceptor, OneWhoseNewSocketCannotBeWatchedServesOnAtTheFormer) {
  on_own_thread([] {
    AcceptorSetting s;
    s.host.room = 0;
    const base::Fd client = s.connect();
    fs::remove(s.path);
    if (!refuse_watches()) GTEST_SKIP() << "without seccomp";
    s.acceptor->restore();
    s.host.room = 1;
    s.turn(2);
    EXPECT_EQ(s.accepted(), 1U);
    s.clock.advance(1s);  // it is tried again
    s.turn(2);
    EXPECT_TRUE(s.acceptor->is_reachable());
  });
}

TEST(Acceptor, ServesOnAtItsFormerSocketWhenThePathIsTaken) {
  AcceptorSetting s;
  const base::Fd before = s.connect();
  fs::remove(s.path);
  fs::create_directory(s.path);
  EXPECT_THROW(s.acceptor->restore(), std::system_error);
  EXPECT_FALSE(s.acceptor->is_reachable());
  s.turn();
  EXPECT_EQ(s.accepted(), 1U);
  fs::remove(s.path);
  s.acceptor->restore();
  EXPECT_TRUE(s.acceptor->is_reachable());
}

TEST(Acceptor, LeavesTheFileOfAnInheritedSocketAlone) {
  AcceptorSetting s;
  const std::string path = s.folder.file("inherited");
  const auto acceptor = inherited_acceptor(s.loop, s.tape.log(), listen_unix(path));
  acceptor->open(s.host);
  const base::Fd client = connect_unix(path);
  s.turn();
  EXPECT_EQ(s.accepted(), 1U);
  EXPECT_TRUE(acceptor->is_reachable());
  acceptor->restore();
  acceptor->close();
  EXPECT_TRUE(fs::is_socket(path));
}

}  // namespace
}  // namespace duet::transport
