// The line behind PgBouncer in transaction mode: it works, without wake-ups, and knows.

#include <gtest/gtest.h>

#include "task/postgres/database.h"
#include "task/postgres/server_fixture_test.h"

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;

constexpr const char* pgbouncer = "/usr/sbin/pgbouncer";
constexpr int pooler_port = 6543;

class PoolerTest : public ServerTest {
 protected:
  void SetUp() override {
    if (::access(pgbouncer, X_OK) != 0) GTEST_SKIP() << "SKIPPED: PgBouncer is not installed (Debian: pgbouncer)";
    ServerTest::SetUp();
    if (IsSkipped()) return;
    const std::string users = server().keep("users", "\"duet\" \"\"\n");
    const std::string settings =
        server().keep("pgbouncer.ini", "[databases]\npostgres = host=" + server().sockets() +
                                           " port=5432\n[pgbouncer]\nlisten_addr =\n"
                                           "unix_socket_dir = " +
                                           server().sockets() + "\nlisten_port = " + std::to_string(pooler_port) +
                                           "\nauth_type = trust\nauth_file = " + users + "\npool_mode = transaction\n");
    pid_ = server().spawn({pgbouncer, settings});
    ASSERT_TRUE(transport::await([&] { return AdminSession::open(server().address(pooler_port), 2s).has_value(); }))
        << server().read_log();
  }
  void TearDown() override {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid_ = -1;
};

TEST_F(PoolerTest, ThePoolerIsNoticedAndNothingIsListenedTo) {
  transport::Loop loop;
  Database database(loop, server().address(pooler_port), "pg_catalog");
  int ups = 0;
  Line::Events events;
  events.up = [&] { ++ups; };
  database.listen("q_w1");
  database.start(events);
  ASSERT_TRUE(turn_until(loop, [&] { return ups == 1; })) << database.standing().trouble;
  EXPECT_TRUE(database.standing().pooled);
  EXPECT_FALSE(database.standing().listens);
  std::optional<Answer> answer;
  database.call(Line::Way::work, "pg_listening_channels", {}, [&](const Answer& given) { answer = given; });
  ASSERT_TRUE(turn_until(loop, [&] { return answer.has_value(); }));
  ASSERT_TRUE(*answer) << answer->error().message;
  EXPECT_EQ((*answer)->rows(), 0U);
}

TEST_F(PoolerTest, ACommandNoticesIt) {
  const auto session = AdminSession::open(server().address(pooler_port), 60s);
  ASSERT_TRUE(session) << session.error();
  EXPECT_TRUE((*session)->is_pooled());
}

}  // namespace
}  // namespace duet::task::postgres
