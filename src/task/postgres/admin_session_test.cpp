#include "task/postgres/admin_session.h"

#include <gtest/gtest.h>

#include "task/postgres/server_fixture_test.h"

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;

class AdminSessionTest : public ServerTest {};

TEST_F(AdminSessionTest, AScriptGivesTheResultOfItsLastStatement) {
  const auto session = server().open();
  const Answer answer = session->run(
      "CREATE TEMP TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, NULL); "
      "SELECT * FROM t ORDER BY a");
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->rows(), 2U);
  EXPECT_EQ(answer->at(0, "b"), "x");
  EXPECT_EQ(answer->at(1, "b"), std::nullopt);
}

TEST_F(AdminSessionTest, AScriptIsOneTransaction) {
  const auto session = server().open();
  const Answer answer = session->run("CREATE TABLE gone (a int); SELECT 1/0");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Fault::Kind::refused);
  EXPECT_EQ(answer.error().sqlstate, "22012");
  EXPECT_EQ(answer.error().message, "division by zero");
  EXPECT_TRUE(session->is_open());
  EXPECT_EQ(session->run("SELECT to_regclass('gone') IS NULL").value().text(), "t");
}

TEST_F(AdminSessionTest, AStatementTakesArguments) {
  const auto session = server().open();
  const Answer answer = session->ask("SELECT $1::int + 1, $2::text, $3::text[]",
                                     {"41", std::nullopt, array_of(std::vector<std::string>{"a\"b", "c"})});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->number(0, 0), 42);
  EXPECT_EQ(answer->at(0, 1), std::nullopt);
  EXPECT_EQ(answer->text(0, 2), R"({"a\"b",c})");
  EXPECT_EQ(session->call("pg_catalog", "upper", {"word"}).value().text(), "WORD");
  EXPECT_EQ(session->ask("SELECT $1::text", {std::string("a\0b", 3)}).error().sqlstate, "22021");
}

TEST_F(AdminSessionTest, NoticesAreCollected) {
  const auto session = server().open();
  ASSERT_TRUE(session->run("DO $$ BEGIN RAISE NOTICE 'one'; RAISE WARNING 'two'; END $$"));
  const auto notices = session->take_notices();
  ASSERT_EQ(notices.size(), 2U);
  EXPECT_EQ(notices[0].message, "one");
  EXPECT_EQ(notices[1].severity, "WARNING");
  EXPECT_TRUE(session->take_notices().empty());
}

TEST_F(AdminSessionTest, AWakeUpIsAwaited) {
  const auto listener = server().open();
  const auto sender = server().open();
  ASSERT_TRUE(listener->run("LISTEN c"));
  EXPECT_EQ(listener->await_notification(1ms), std::nullopt);
  ASSERT_TRUE(sender->ask("SELECT pg_notify($1, $2)", {"c", "p"}));
  EXPECT_EQ(listener->await_notification(60s), std::pair(std::string("c"), std::string("p")));
}

TEST_F(AdminSessionTest, AnOverdueStatementBreaksTheSession) {
  const auto session = server().open();
  const Answer late = session->run("SELECT pg_sleep(2)", 50ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, Fault::Kind::unknown);
  EXPECT_FALSE(session->is_open());
  EXPECT_EQ(session->run("SELECT 1").error().kind, Fault::Kind::never);
}

TEST_F(AdminSessionTest, AConnectionThatTheServerEndsIsUnknown) {
  const auto session = server().open();
  const Answer ended = session->run("SELECT pg_terminate_backend(pg_backend_pid())");
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().kind, Fault::Kind::unknown);
  EXPECT_EQ(ended.error().sqlstate, "57P01");
  EXPECT_FALSE(session->is_open());
}

TEST_F(AdminSessionTest, ItKnowsItsServer) {
  const auto session = server().open();
  EXPECT_GE(session->server_version(), 140000);
  EXPECT_EQ(session->server_parameter("server_encoding"), "UTF8");
  EXPECT_EQ(session->tls(), "");
  EXPECT_FALSE(session->is_pooled());
  EXPECT_EQ(session->server(), "duet@" + server().sockets() + ":5432/postgres");
}

TEST_F(AdminSessionTest, WhereNoServerIsTheErrorSaysWhere) {
  const auto session = AdminSession::open(server().address(5999), 60s);
  ASSERT_FALSE(session);
  EXPECT_NE(session.error().find("5999"), std::string::npos) << session.error();
}

}  // namespace
}  // namespace duet::task::postgres
