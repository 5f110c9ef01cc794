#include <sys/socket.h>

#include <gtest/gtest.h>

#include "duet/base/fd.h"
#include "duet/peer/server_fixture_test.h"
#include "duet/transport/refused_watches_test.h"
#include "duet/transport/unix_socket.h"

namespace duet::peer {
namespace {

bool was_refused(const base::Fd& client) {
  char byte = 0;
  return recv(client.get(), &byte, 1, MSG_DONTWAIT) == 0;
}

TEST(ThreadsServer, AClientThatTheLoopCannotWatchIsRefusedAndTheServerGoesOn) {
  transport::on_own_thread([] {
    ServerSetting s;
    s.server.start(s.path);
    if (!transport::refuse_watches()) GTEST_SKIP() << "without seccomp";
    for (int i = 0; i < 3; ++i) {
      const base::Fd client = transport::connect_unix(s.path);
      for (int turns = 0; turns < 5; ++turns) s.loop.turn(std::chrono::seconds(0));
      EXPECT_TRUE(was_refused(client));
      EXPECT_EQ(s.server.client_count(), 0U);
    }
  });
}

}  // namespace
}  // namespace duet::peer
