#include "task/postgres/database.h"

#include <gtest/gtest.h>

#include "duet/base/skipping_clock_test.h"
#include "task/postgres/proxy_test.h"
#include "task/postgres/server_fixture_test.h"

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;
using Way = Line::Way;

constexpr int proxy_port = 7000;

class DatabaseTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(server().open()->run(
        "CREATE SCHEMA IF NOT EXISTS q; CREATE OR REPLACE FUNCTION q.twice(p_a int) RETURNS int LANGUAGE plpgsql AS $$ "
        "BEGIN RETURN 2 * p_a; END $$; CREATE OR REPLACE FUNCTION q.sleep(p_s float) RETURNS text LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_sleep(p_s); RETURN 'slept'; END $$; CREATE OR REPLACE FUNCTION q.lock() RETURNS text "
        "LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN 'locked'; END $$"));
  }
  void TearDown() override {
    database_.reset();
    proxy_.reset();
    if (TestServer::programs()) std::filesystem::remove(server().socket_file(proxy_port));
  }

  void begin(int port = 0, const Database::Options& options = {}) {
    database_.emplace(loop_, server().address(port), "q", options);
    events_.up = [this] { ++ups_; };
    events_.down = [this](const std::string& why) { troubles_.push_back(why); };
    events_.notified = [this](const std::string& channel, const std::string& payload) {
      heard_.push_back(channel + "=" + payload);
    };
    database_->start(events_);
  }
  void begin_through_proxy(const Database::Options& options = {}) {
    proxy_.emplace(loop_, server().socket_file(proxy_port), server().socket_file(5432));
    begin(proxy_port, options);
  }
  bool await_ups(int count) {
    return turn_until(loop_, [&] { return ups_ >= count; });
  }
  /// Nothing is under way any more.
  bool await_proven() {
    return turn_until(loop_, [&] { return database_->standing().listens; }) && call(Way::work, "twice", {"1"});
  }
  std::shared_ptr<std::optional<Answer>> send(Way way, std::string_view function, std::vector<Argument> arguments) {
    auto kept = std::make_shared<std::optional<Answer>>();
    database_->call(way, function, std::move(arguments), [kept](const Answer& answer) { *kept = answer; });
    return kept;
  }
  Answer await(const std::shared_ptr<std::optional<Answer>>& kept) {
    EXPECT_TRUE(turn_until(loop_, [&] { return kept->has_value(); })) << "never answered";
    return kept->value_or(Answer(tl::unexpected(Fault())));
  }
  Answer call(Way way, std::string_view function, std::vector<Argument> arguments) {
    return await(send(way, function, std::move(arguments)));
  }
  std::string connections() {
    return std::string(server()
                           .open()
                           ->run("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'duet-rpc test' AND "
                                 "pid <> pg_backend_pid()")
                           .value()
                           .text());
  }

  base::SkippingClock clock_;
  transport::Loop loop_{clock_};
  Line::Events events_;
  std::optional<Proxy> proxy_;
  std::optional<Database> database_;
  int ups_ = 0;
  std::vector<std::string> troubles_;
  std::vector<std::string> heard_;
};

TEST_F(DatabaseTest, FunctionsOfTheSchemaAreCalledOnBothWays) {
  begin();
  EXPECT_FALSE(database_->is_up(Way::work));
  EXPECT_EQ(call(Way::work, "twice", {"21"}).value().text(), "42");
  EXPECT_EQ(call(Way::watch, "twice", {"4"}).value().text(), "8");
  ASSERT_TRUE(await_ups(1));
  EXPECT_TRUE(database_->is_up(Way::work));
  EXPECT_TRUE(database_->is_up(Way::watch));
  EXPECT_EQ(database_->standing().trouble, "");
  EXPECT_EQ(database_->standing().server, "duet@" + server().sockets() + ":5432/postgres");
  EXPECT_TRUE(database_->standing().round_trip);
}

TEST_F(DatabaseTest, ASchemaMustBeANameThatNeedsNoQuotes) {
  for (const std::string& name : {std::string(), std::string("a b"), std::string("1a"), std::string("A"),
                                  std::string("a;b"), std::string(41, 'a')}) {
    EXPECT_THROW(Database(loop_, server().address(), name), std::invalid_argument) << name;
  }
}

TEST_F(DatabaseTest, EachConnectionIsGreetedBeforeItIsUsed) {
  std::vector<Way> greeted;
  bool refuse = true;
  events_.greet = [&](Way way, const Line::Ask& ask, const Line::Verdict& verdict) {
    greeted.push_back(way);
    ask("twice", {"1"}, [&, verdict](const Answer& answer) {
      EXPECT_EQ(answer.value().text(), "2");
      verdict(std::exchange(refuse, false) ? std::optional<std::string>("an old primary") : std::nullopt);
    });
  };
  begin();
  ASSERT_TRUE(await_ups(1));
  EXPECT_EQ(greeted.size(), 3U);
  EXPECT_EQ(troubles_, std::vector<std::string>{"an old primary"});
}

TEST_F(DatabaseTest, AVerdictOnAConnectionThatIsGoneIsNoneOnTheNextOne) {
  std::vector<Line::Verdict> verdicts;
  events_.greet = [&](Way way, const Line::Ask&, const Line::Verdict& verdict) {
    if (way == Way::watch) return verdict(std::nullopt);
    verdicts.push_back(verdict);
  };
  begin_through_proxy();
  ASSERT_TRUE(turn_until(loop_, [&] { return verdicts.size() == 1 && database_->is_up(Way::watch); }));
  proxy_->cut();
  ASSERT_TRUE(turn_until(loop_, [&] { return verdicts.size() == 2; }));
  verdicts[0](std::nullopt);
  EXPECT_FALSE(database_->is_up(Way::work));
  verdicts[1](std::nullopt);
  EXPECT_TRUE(database_->is_up(Way::work));
}

TEST_F(DatabaseTest, WakeUpsAreProvenAndComeAlsoAfterAReconnect) {
  database_.reset();
  begin_through_proxy();
  database_->listen("q_w1");
  ASSERT_TRUE(await_ups(1));
  ASSERT_TRUE(turn_until(loop_, [&] { return database_->standing().listens; }));
  database_->listen("q_events");
  ASSERT_TRUE(call(Way::watch, "twice", {"1"})) << "what was asked before is done";
  const auto other = server().open();
  const auto notify = [&](const char* channel, const char* payload) {
    return other->ask("SELECT pg_notify($1, $2)", {channel, payload}).has_value();
  };
  ASSERT_TRUE(notify("q_w1", "task"));
  ASSERT_TRUE(notify("q_events", ""));
  ASSERT_TRUE(turn_until(loop_, [&] { return heard_.size() == 2; }));
  proxy_->cut();
  ASSERT_TRUE(turn_until(loop_, [&] { return !database_->is_up(Way::watch); }));
  EXPECT_FALSE(database_->standing().listens);
  ASSERT_TRUE(await_ups(2));
  ASSERT_TRUE(turn_until(loop_, [&] { return database_->standing().listens; }));
  ASSERT_TRUE(notify("q_w1", "again"));
  ASSERT_TRUE(turn_until(loop_, [&] { return heard_.size() == 3; }));
  EXPECT_EQ(heard_, (std::vector<std::string>{"q_w1=task", "q_events=", "q_w1=again"}));
  database_->unlisten("q_w1");
  ASSERT_TRUE(call(Way::watch, "twice", {"1"}));
  ASSERT_TRUE(notify("q_w1", "unheard"));
  ASSERT_TRUE(notify("q_events", "heard"));
  ASSERT_TRUE(turn_until(loop_, [&] { return heard_.size() == 4; }));
  EXPECT_EQ(heard_[3], "q_events=heard");
}

TEST_F(DatabaseTest, AnOverdueCallIsAskedAfterOnTheOtherConnectionAndNoThirdOneIsOpened) {
  begin(0, {.link = {.patience = 500ms, .inquiry = 10s}});
  ASSERT_TRUE(await_ups(1));
  const auto slow = send(Way::work, "sleep", {"2.5"});
  const Answer late = await(slow);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, Fault::Kind::unknown);
  EXPECT_EQ(connections(), "2");
  EXPECT_TRUE(turn_until(loop_, [&] { return call(Way::watch, "twice", {"1"}).has_value(); }))
      << "the other one goes on";
  ASSERT_TRUE(turn_until(loop_, [&] { return call(Way::work, "twice", {"3"}).has_value(); }));
  EXPECT_TRUE(troubles_.empty()) << troubles_[0];
  EXPECT_EQ(connections(), "2");
}

TEST_F(DatabaseTest, ReadsDoNotWaitBehindASlowCall) {
  ASSERT_TRUE(server().open()->run(
      "CREATE OR REPLACE FUNCTION q.read_it() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'read'; END $$"));
  begin(0, {.link = {.slow = 200ms}});
  ASSERT_TRUE(await_ups(1) && await_proven());
  const auto holder = server().open();
  ASSERT_TRUE(holder->run("SELECT pg_advisory_lock(1)"));
  const auto slow = send(Way::work, "lock", {});
  const auto waits = send(Way::work, "twice", {"1"});
  EXPECT_EQ(call(Way::work, "read_it", {}).value().text(), "read") << "it was waiting when the other became slow";
  EXPECT_EQ(call(Way::work, "read_it", {}).value().text(), "read");
  EXPECT_FALSE(*slow);
  EXPECT_FALSE(*waits);
  EXPECT_GE(database_->standing().waited, 200ms);
  ASSERT_TRUE(holder->run("SELECT pg_advisory_unlock(1)"));
  EXPECT_EQ(await(waits).value().text(), "2");
  EXPECT_EQ(database_->standing().waited, 0ms);
}

TEST_F(DatabaseTest, AnAnswerThatWasLostIsFoundOutOnTheOtherConnection) {
  begin_through_proxy({.link = {.inquiry = 60s}});
  ASSERT_TRUE(await_ups(1) && await_proven());
  // The answer to the call is lost; what the other connection says is not.
  const auto lost = send(Way::work, "sleep", {"0"});
  proxy_->to_client.mode = Proxy::Mode::drop;
  ASSERT_TRUE(turn_until(loop_, [&] { return proxy_->to_client.dropped > 0; }));
  clock_.skip(Link::Options().patience);
  ASSERT_TRUE(turn_until(loop_, [&] { return lost->has_value(); }));
  proxy_->to_client.mode = Proxy::Mode::pass;
  EXPECT_EQ((*lost)->error().kind, Fault::Kind::unknown);
  ASSERT_TRUE(await_ups(2));
  ASSERT_EQ(troubles_.size(), 1U);
  EXPECT_EQ(troubles_[0], "the server does not work on what it was sent");
}

TEST_F(DatabaseTest, PacketsThatAreDroppedWithoutAWordEndBothConnections) {
  begin_through_proxy({.link = {.inquiry = 100ms}});
  ASSERT_TRUE(await_ups(1) && await_proven());
  proxy_->to_client.mode = Proxy::Mode::drop;
  proxy_->to_server.mode = Proxy::Mode::drop;
  const auto work = send(Way::work, "twice", {"1"});
  const auto watch = send(Way::watch, "twice", {"1"});
  clock_.skip(Link::Options().patience);
  EXPECT_EQ(await(work).error().kind, Fault::Kind::unknown);
  EXPECT_EQ(await(watch).error().kind, Fault::Kind::unknown);
  ASSERT_TRUE(turn_until(loop_, [&] { return !database_->is_up(Way::work) && !database_->is_up(Way::watch); }));
  proxy_->pass();
  EXPECT_TRUE(await_ups(2));
}

TEST_F(DatabaseTest, ManyComeBackToAServerThatWasKilledAndStartedAgain) {
  TestServer own;
  own.start();
  std::vector<std::unique_ptr<Database>> many;
  std::size_t up = 0;
  Line::Events events;
  events.up = [&] { ++up; };
  for (int i = 0; i < 25; ++i) {
    many.push_back(std::make_unique<Database>(loop_, own.address(), "pg_catalog"));
    many.back()->start(events);
  }
  ASSERT_TRUE(turn_until(loop_, [&] { return up == many.size(); }));
  own.stop(SIGKILL);
  own.start();
  up = 0;
  const auto began = std::chrono::steady_clock::now();
  ASSERT_TRUE(turn_until(loop_, [&] { return up >= many.size(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - began, 20s);
  many.clear();
}

TEST_F(DatabaseTest, TheSameTroubleIsToldOnce) {
  begin(5999);
  ASSERT_TRUE(turn_until(loop_, [&] { return !troubles_.empty(); }));
  const auto until = std::chrono::steady_clock::now() + 1s;
  ASSERT_TRUE(turn_until(loop_, [&] { return std::chrono::steady_clock::now() > until; }));
  EXPECT_EQ(troubles_.size(), 1U);
  EXPECT_NE(database_->standing().trouble.find("5999"), std::string::npos);
}

}  // namespace
}  // namespace duet::task::postgres
