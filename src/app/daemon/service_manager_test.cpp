#include "app/daemon/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "duet/transport/temporary_folder_test.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;

struct ServiceManagerTest : testing::Test {
  ServiceManagerTest() : inbox(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    path.copy(at.sun_path, sizeof at.sun_path - 1);
    EXPECT_EQ(bind(inbox.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~ServiceManagerTest() override {
    for (const char* const name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS"}) {
      EXPECT_EQ(std::getenv(name), nullptr) << name << " is left to children";
      unsetenv(name);
    }
  }

  std::string told() const {
    std::array<char, 256> room;
    const ssize_t count = recv(inbox.get(), room.data(), room.size(), 0);
    return count < 0 ? "nothing" : std::string(room.data(), static_cast<std::size_t>(count));
  }

  transport::TemporaryFolder folder;
  std::string path = folder.file("notify");
  base::Fd inbox;
};

TEST_F(ServiceManagerTest, IsToldHowWeAre) {
  const ServiceManager manager;
  manager.tell("READY=1");
  EXPECT_EQ(told(), "READY=1");
  EXPECT_FALSE(manager.watchdog());
}

TEST_F(ServiceManagerTest, IsThereIfItGaveUsSomething) {
  EXPECT_TRUE(ServiceManager().is_there());
  EXPECT_FALSE(ServiceManager().is_there()) << "the variables were taken";
  setenv("LISTEN_FDS", "1", 1);
  setenv("LISTEN_PID", "1", 1);
  EXPECT_FALSE(ServiceManager().is_there()) << "that is for another process";
  setenv("LISTEN_FDS", "1", 1);
  setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
  EXPECT_TRUE(ServiceManager().is_there());
}

TEST_F(ServiceManagerTest, AWatchdogIsToldTwiceAsOftenAsItMustBe) {
  setenv("WATCHDOG_USEC", "30000000", 1);
  EXPECT_EQ(ServiceManager().watchdog(), 15s);
  setenv("NOTIFY_SOCKET", path.c_str(), 1);
  setenv("WATCHDOG_USEC", "30000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  EXPECT_EQ(ServiceManager().watchdog(), 15s);
}

TEST_F(ServiceManagerTest, AWatchdogOfAnotherProcessOrNoneIsNotTold) {
  setenv("WATCHDOG_USEC", "30000000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  EXPECT_FALSE(ServiceManager().watchdog());
  for (const char* const every : {"", "0", "1", "soon", "-5", "99999999999999999999999"}) {
    setenv("NOTIFY_SOCKET", path.c_str(), 1);
    setenv("WATCHDOG_USEC", every, 1);
    EXPECT_FALSE(ServiceManager().watchdog()) << every;
  }
}

TEST_F(ServiceManagerTest, WithoutAManagerNothingHappens) {
  setenv("NOTIFY_SOCKET", "", 1);
  setenv("WATCHDOG_USEC", "30000000", 1);
  ServiceManager manager;
  manager.tell("READY=1");
  EXPECT_FALSE(manager.watchdog());
  EXPECT_FALSE(manager.take_listeners().unix);
  EXPECT_EQ(told(), "nothing");
}

TEST_F(ServiceManagerTest, IsHandedOnToAProgramThatThisProcessGoesOnAs) {
  setenv("WATCHDOG_USEC", "30000000", 1);
  ServiceManager().hand_on();
  const ServiceManager next;
  next.tell("READY=1");
  EXPECT_EQ(told(), "READY=1");
  EXPECT_EQ(next.watchdog(), 15s);
}

TEST_F(ServiceManagerTest, SocketsForAnotherProcessAreNotTaken) {
  setenv("LISTEN_PID", "1", 1);
  setenv("LISTEN_FDS", "1", 1);
  EXPECT_FALSE(ServiceManager().take_listeners().unix);
}

}  // namespace
}  // namespace duet::app
