#include "task/postgres/link.h"

#include <gtest/gtest.h>

#include "duet/base/skipping_clock_test.h"
#include "task/postgres/proxy_test.h"
#include "task/postgres/server_fixture_test.h"

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;

constexpr int proxy_port = 7000;

// A link, mostly through a proxy, with what it told.
class LinkTest : public ServerTest {
 protected:
  void TearDown() override {
    link_.reset();
    proxy_.reset();
    if (TestServer::programs()) std::filesystem::remove(server().socket_file(proxy_port));
  }

  void connect(int port = 0, Link::Options options = {}) {
    begin(server().address(port), options);
    ASSERT_TRUE(turn_until(loop_, [&] { return link_->is_up(); })) << trouble_;
  }
  void connect_through_proxy(Link::Options options = {}) {
    proxy_.emplace(loop_, server().socket_file(proxy_port), server().socket_file(5432));
    connect(proxy_port, options);
  }
  void begin(StoreAddress address, Link::Options options = {}) {
    address_ = std::move(address);
    events_.up = [this] { ++ups_; };
    events_.down = [this](const std::string& why) {
      ++downs_;
      trouble_ = why;
    };
    link_.emplace(loop_, address_, events_, options);
    link_->start();
  }

  std::shared_ptr<std::optional<Answer>> send(const std::string& sql, std::vector<Argument> arguments = {},
                                              Link::Place place = Link::Place::own) {
    auto kept = std::make_shared<std::optional<Answer>>();
    const auto done = [kept](const Answer& answer) {
      EXPECT_FALSE(*kept) << "answered twice";
      *kept = answer;
    };
    link_->call({sql, std::move(arguments)}, done, place);
    EXPECT_FALSE(*kept) << "answered within the call";
    return kept;
  }
  Answer await(const std::shared_ptr<std::optional<Answer>>& kept) {
    EXPECT_TRUE(turn_until(loop_, [&] { return kept->has_value(); })) << "never answered";
    return kept->value_or(Answer(tl::unexpected(Fault())));
  }
  Answer ask(const std::string& sql, std::vector<Argument> arguments = {}) {
    return await(send(sql, std::move(arguments)));
  }
  /// The same, when its time is up before anything happens.
  Answer ask_too_late(const std::string& sql) {
    const auto kept = send(sql);
    clock_.skip(Link::Options().patience);
    return await(kept);
  }
  static std::optional<Fault::Kind> kind(const Answer& answer) {
    return answer ? std::nullopt : std::optional(answer.error().kind);
  }
  bool await_sent() {
    const std::size_t before = proxy_->to_server.passed;
    return turn_until(loop_, [&] { return proxy_->to_server.passed > before; });
  }
  bool await_ups(int count) {
    return turn_until(loop_, [&] { return ups_ >= count && link_->is_up(); });
  }

  base::SkippingClock clock_;
  transport::Loop loop_{clock_};
  StoreAddress address_;
  Link::Events events_;
  std::optional<Proxy> proxy_;
  std::optional<Link> link_;
  int ups_ = 0;
  int downs_ = 0;
  std::string trouble_;
};

TEST_F(LinkTest, AHundredCallsAreAnsweredInOrder) {
  begin(server().address());
  std::vector<std::int64_t> answers;
  for (int i = 0; i < 100; ++i) {
    link_->call({"SELECT $1::int", {argument_of(i)}},
                [&](const Answer& answer) { answers.push_back(answer ? answer->number(0, 0).value_or(-1) : -2); });
  }
  ASSERT_TRUE(turn_until(loop_, [&] { return answers.size() == 100; }));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(answers[static_cast<std::size_t>(i)], i);
}

TEST_F(LinkTest, ARefusalIsCertainAndTheConnectionGoesOn) {
  connect();
  const Answer answer = ask("SELECT 1/0");
  ASSERT_EQ(kind(answer), Fault::Kind::refused);
  EXPECT_EQ(answer.error().sqlstate, "22012");
  EXPECT_EQ(ask("SELECT 2").value().text(), "2");
  EXPECT_EQ(ups_, 1);
}

TEST_F(LinkTest, WhatIsSentAgainAndAgainIsPreparedOnceAndSentInFullWhenTheServerForgets) {
  connect();
  link_->prepare_statements();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask("SELECT 2 * $1::int", {argument_of(i)}).value().number(0, 0), 2 * i);
  EXPECT_EQ(ask("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT 2 *%'").value().text(), "1");
  ASSERT_TRUE(ask("DEALLOCATE ALL"));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask("SELECT 2 * $1::int", {argument_of(i)}).value().number(0, 0), 2 * i);
  EXPECT_EQ(ask("SELECT count(*) FROM pg_prepared_statements").value().text(), "0");
  EXPECT_EQ(ups_, 1);
}

TEST_F(LinkTest, ARefusalOfWhatHasANameIsCertainToo) {
  connect();
  link_->prepare_statements();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask("SELECT 1 / $1::int", {"0"}).error().sqlstate, "22012");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask("SELECT nothing($1::int)", {"0"}).error().sqlstate, "42883");
  EXPECT_EQ(ask("SELECT 1 / $1::int", {"1"}).value().text(), "1");
}

TEST_F(LinkTest, TextWithAZeroByteIsRefused) {
  connect();
  EXPECT_EQ(ask("SELECT $1::text", {std::string("a\0b", 3)}).error().sqlstate, "22021");
}

TEST_F(LinkTest, TooMuchThatWaitsIsNeverSent) {
  begin(server().address(), {.most_calls = 3, .most_bytes = 1000});
  const auto large = send("SELECT 1", {std::string(1000, 'x')});
  std::vector<std::shared_ptr<std::optional<Answer>>> calls;
  for (int i = 0; i < 4; ++i) calls.push_back(send("SELECT 1"));
  EXPECT_EQ(kind(await(large)), Fault::Kind::never);
  EXPECT_EQ(kind(await(calls[3])), Fault::Kind::never);
  EXPECT_TRUE(await(calls[2]));
}

TEST_F(LinkTest, WhatWasNotSentWhenItBrokeGoesOverTheNextConnection) {
  connect_through_proxy();
  proxy_->cut();
  ASSERT_TRUE(turn_until(loop_, [&] { return !link_->is_up(); }));
  EXPECT_EQ(ask("SELECT 7").value().text(), "7");
  EXPECT_EQ(ups_, 2);
}

TEST_F(LinkTest, WhatWasSentWhenItBrokeIsUnknownAndWhatWaitedBehindItIsNot) {
  connect_through_proxy();
  const auto sent = send("SELECT pg_sleep(30)");
  const auto waiting = send("SELECT 8");
  ASSERT_TRUE(await_sent());
  proxy_->cut();
  EXPECT_EQ(kind(await(sent)), Fault::Kind::unknown);
  EXPECT_EQ(await(waiting).value().text(), "8");
}

TEST_F(LinkTest, AReadThatWasSentWhenItBrokeIsAskedAgain) {
  connect_through_proxy();
  const auto read = send("SELECT 9 FROM pg_sleep(0.2)", {}, Link::Place::movable);
  ASSERT_TRUE(await_sent());
  proxy_->cut();
  const Answer answer = await(read);
  ASSERT_TRUE(answer) << answer.error().message << answer.error().sqlstate;
  EXPECT_EQ(answer->text(), "9");
  EXPECT_EQ(ups_, 2);
}

TEST_F(LinkTest, HalfAnAnswerIsUnknown) {
  connect_through_proxy();
  proxy_->to_client.left = 20'000;
  EXPECT_EQ(kind(ask("SELECT repeat('x', 50000)")), Fault::Kind::unknown);
  EXPECT_TRUE(await_ups(2));
}

// The rows are sent before the commit; what says that it is committed are the last six bytes.
TEST_F(LinkTest, AWholeAnswerWithoutTheWordThatItIsCommittedIsUnknown) {
  constexpr std::size_t ready_for_query = 6;
  connect_through_proxy();
  ASSERT_TRUE(ask("SELECT repeat('x', 9000)"));
  const std::size_t before = proxy_->to_client.passed;
  ASSERT_TRUE(ask("SELECT repeat('x', 9000)"));
  const std::size_t length = proxy_->to_client.passed - before;
  proxy_->to_client.left = length;
  EXPECT_TRUE(ask("SELECT repeat('x', 9000)")) << "all of it came before the end";
  ASSERT_TRUE(await_ups(2));
  proxy_->to_client.left = length - ready_for_query;
  EXPECT_EQ(kind(ask("SELECT repeat('x', 9000)")), Fault::Kind::unknown);
}

TEST_F(LinkTest, AnErrorAtTheCommitIsTheAnswer) {
  ASSERT_TRUE(
      server().open()->run("CREATE TABLE IF NOT EXISTS parent (a int PRIMARY KEY); CREATE TABLE IF NOT EXISTS "
                           "child (a int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)"));
  connect();
  const Answer answer = ask("INSERT INTO child VALUES (1) RETURNING a");
  ASSERT_EQ(kind(answer), Fault::Kind::refused);
  EXPECT_EQ(answer.error().sqlstate, "23503");
}

TEST_F(LinkTest, WithoutAServerACallIsNeverSent) {
  begin(server().address(5999), {.patience = 100ms});
  EXPECT_EQ(kind(ask("SELECT 1")), Fault::Kind::never);
  EXPECT_NE(trouble_.find("5999"), std::string::npos) << trouble_;
}

TEST_F(LinkTest, AnOverdueCallIsUnknownAndItsConnectionGivenUpWhenNobodyKnowsOfIt) {
  connect_through_proxy({.inquiry = 100ms});
  proxy_->to_client.mode = Proxy::Mode::drop;
  EXPECT_EQ(kind(ask_too_late("SELECT 1")), Fault::Kind::unknown);
  proxy_->pass();  // for the next connection
  ASSERT_TRUE(turn_until(loop_, [&] { return downs_ > 0; }));
  EXPECT_TRUE(await_ups(2));
}

TEST_F(LinkTest, AStalledServerIsGivenUpOnlyWhenTheInquiryGetsNoAnswerEither) {
  int asked = 0;
  events_.inquire = [&](int, const std::function<void(std::optional<bool>)>& answer) {
    ++asked;
    answer(std::nullopt);
  };
  connect_through_proxy({.inquiry = std::chrono::hours(1)});
  proxy_->to_server.mode = Proxy::Mode::hold;
  EXPECT_EQ(kind(ask_too_late("SELECT 1")), Fault::Kind::unknown);
  EXPECT_TRUE(link_->is_up());
  clock_.skip(std::chrono::hours(1));
  ASSERT_TRUE(turn_until(loop_, [&] { return downs_ > 0; }));
  EXPECT_EQ(asked, 1);
}

TEST_F(LinkTest, WhileTheServerWorksOnAnOverdueCallNoOtherConnectionIsOpened) {
  int asked = 0;
  events_.inquire = [&](int process, const std::function<void(std::optional<bool>)>& answer) {
    EXPECT_EQ(process, link_->session()->server_process());
    ++asked;
    answer(true);
  };
  const auto holder = server().open();
  ASSERT_TRUE(holder->run("SELECT pg_advisory_lock(1)"));
  connect_through_proxy({.inquiry = 100ms});
  EXPECT_EQ(kind(ask_too_late("SELECT pg_advisory_xact_lock(1)")), Fault::Kind::unknown);
  EXPECT_EQ(kind(ask_too_late("SELECT 1")), Fault::Kind::never) << "it waits behind the other one";
  ASSERT_TRUE(turn_until(loop_, [&] { return asked > 2; }));
  ASSERT_TRUE(holder->run("SELECT pg_advisory_unlock(1)"));
  ASSERT_TRUE(turn_until(loop_, [&] { return !link_->session()->is_busy(); }));
  ASSERT_TRUE(turn_until(loop_, [&] { return ask("SELECT 3").has_value(); }));
  EXPECT_EQ(proxy_->accepted(), 1U);
}

TEST_F(LinkTest, AServerThatDoesNotWorkOnAnOverdueCallIsLeft) {
  events_.inquire = [&](int, const std::function<void(std::optional<bool>)>& answer) { answer(false); };
  connect_through_proxy({.inquiry = 60s});
  proxy_->to_client.mode = Proxy::Mode::hold;
  EXPECT_EQ(kind(ask_too_late("SELECT 1")), Fault::Kind::unknown);
  ASSERT_TRUE(turn_until(loop_, [&] { return downs_ > 0; }));
  proxy_->pass();
  EXPECT_TRUE(await_ups(2));
}

// momentary(code, N) refuses with the code until it is called for the Nth time.
void make_momentary(AdminSession& session) {
  ASSERT_TRUE(
      session.run("DROP SEQUENCE IF EXISTS tries; CREATE SEQUENCE tries; CREATE OR REPLACE FUNCTION "
                  "momentary(code text, needed int) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint := "
                  "nextval('tries'); BEGIN IF n < needed THEN RAISE EXCEPTION USING ERRCODE = code; END IF; "
                  "RETURN n; END $$"));
}

TEST_F(LinkTest, WhatIsRefusedForAMomentIsSentAgainFiveTimes) {
  const auto session = server().open();
  connect();
  for (const char* code : {"40001", "40P01", "55P03"}) {
    make_momentary(*session);
    const Answer answer = ask("SELECT momentary($1, 6)", {code});
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->text(), "6");
    make_momentary(*session);
    EXPECT_EQ(ask("SELECT momentary($1, 7)", {code}).error().sqlstate, code);
  }
  EXPECT_EQ(ups_, 1);
}

TEST_F(LinkTest, WhatAStandbyRefusesIsSentOverTheNextConnection) {
  make_momentary(*server().open());
  connect();
  const auto first = send("SELECT momentary('25006', 2)");
  const auto second = send("SELECT 5");
  EXPECT_EQ(await(first).value().text(), "2");
  EXPECT_EQ(await(second).value().text(), "5");
  EXPECT_EQ(ups_, 2);
}

TEST_F(LinkTest, AServerThatShutsDownIsLeftAndFoundAgain) {
  connect();
  ASSERT_TRUE(
      server().open()->ask("SELECT pg_terminate_backend($1)", {argument_of(link_->session()->server_process())}));
  ASSERT_TRUE(await_ups(2));
  EXPECT_NE(trouble_.find("administrator"), std::string::npos) << trouble_;
}

TEST_F(LinkTest, AServerThatIsKilledAndStartedAgainIsFoundAgain) {
  TestServer own;
  own.start();
  begin(own.address());
  ASSERT_TRUE(await_ups(1));
  ASSERT_TRUE(ask("CREATE TABLE kept (a int)"));
  own.stop(SIGKILL);
  ASSERT_TRUE(turn_until(loop_, [&] { return !link_->is_up(); }));
  const auto waiting = send("INSERT INTO kept VALUES (1) RETURNING a");
  own.start();
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(await(waiting).value().text(), "1");
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  link_.reset();
}

TEST_F(LinkTest, AConnectionIsUsedOnlyWhenItWasAccepted) {
  std::vector<std::string> greetings;
  events_.connected = [&] {
    link_->ask({"SELECT 'hello'", {}}, [&](const Answer& answer) {
      greetings.emplace_back(answer.value().text());
      if (greetings.size() < 3) return link_->refuse("not this one");
      link_->accept();
    });
  };
  begin(server().address());
  const auto call = send("SELECT 'work'");
  EXPECT_EQ(await(call).value().text(), "work");
  EXPECT_EQ(greetings.size(), 3U);
  EXPECT_EQ(downs_, 2);
  EXPECT_EQ(trouble_, "not this one");
  EXPECT_EQ(ups_, 1);
}

TEST_F(LinkTest, AServerThatDoesNotAnswerTheGreetingIsLeft) {
  int connected = 0;
  events_.connected = [&] {
    if (++connected == 1) proxy_->to_client.mode = Proxy::Mode::drop;
    link_->ask({"SELECT 1", {}}, [&](const Answer& answer) {
      if (answer) link_->accept();
    });
  };
  proxy_.emplace(loop_, server().socket_file(proxy_port), server().socket_file(5432));
  begin(server().address(proxy_port), {.patience = 300ms});
  ASSERT_TRUE(turn_until(loop_, [&] { return downs_ > 0; }));
  proxy_->pass();
  EXPECT_TRUE(await_ups(1));
}

TEST_F(LinkTest, WakeUpsAreTold) {
  std::vector<std::string> heard;
  events_.notified = [&](const std::string& channel, const std::string& payload) {
    heard.push_back(channel + "=" + payload);
  };
  connect();
  ASSERT_TRUE(ask("LISTEN c"));
  const auto other = server().open();
  for (const char* payload : {"1", "2", ""}) ASSERT_TRUE(other->ask("SELECT pg_notify('c', $1)", {payload}));
  ASSERT_TRUE(turn_until(loop_, [&] { return heard.size() == 3; }));
  EXPECT_EQ(heard, (std::vector<std::string>{"c=1", "c=2", "c="}));
}

TEST_F(LinkTest, TheNextHostIsTriedWhenOneDoesNotAnswer) {
  const std::string socket = server().sockets();
  begin(StoreAddress::parse("postgresql://duet@/postgres?host=/nowhere," + socket + "&port=5432", {"n"}).value());
  ASSERT_TRUE(await_ups(1));
  EXPECT_EQ(link_->server(), "duet@" + socket + ":5432/postgres");
}

TEST_F(LinkTest, AHostThatSaysNothingIsGivenUpAndTriedLastTheNextTime) {
  Proxy silent(loop_, server().socket_file(7001), server().socket_file(5432));
  silent.to_client.mode = Proxy::Mode::drop;
  const std::string hosts = server().sockets() + "," + server().sockets();
  begin(StoreAddress::parse("postgresql://duet@/postgres?host=" + hosts + "&port=7001,5432", {"n"}).value(),
        {.search = {.longest_attempt = 200ms}});
  ASSERT_TRUE(await_ups(1));
  EXPECT_EQ(silent.accepted(), 1U);
  link_->reconnect("for the test");
  ASSERT_TRUE(await_ups(2));
  EXPECT_EQ(silent.accepted(), 1U);
  link_.reset();
}

TEST_F(LinkTest, AServerThatMayNotBeWrittenToIsPassedOver) {
  TestServer standby;
  standby.set("default_transaction_read_only = on");
  standby.start_without_waiting();
  const std::string hosts = standby.sockets() + "," + server().sockets();
  const auto address = StoreAddress::parse("postgresql://duet@/postgres?host=" + hosts + "&port=5432", {"n"}).value();
  ASSERT_TRUE(transport::await([&] { return standby.takes_connections(); })) << standby.read_log();
  begin(address);
  ASSERT_TRUE(await_ups(1));
  EXPECT_EQ(link_->server(), "duet@" + server().sockets() + ":5432/postgres");
  link_.reset();
}

// What a callback throws is nobody's end.
struct Patience final : transport::Loop::Overseer {
  void on_defect(const base::Activity&) override { ++defects; }
  void on_turn(base::Duration, const base::Activity&) override {}
  int defects = 0;
};

TEST_F(LinkTest, AServerWhoseGreetingFailedHereIsGreetedAnew) {
  Patience patience;
  loop_.set_overseer(&patience);
  int greetings = 0;
  events_.connected = [&] {
    link_->ask({"SELECT 1", {}}, [&](const Answer& answer) {
      if (!answer) return;
      if (++greetings == 1) throw std::bad_alloc();
      link_->accept();
    });
  };
  begin(server().address(), {.patience = 200ms});
  EXPECT_TRUE(await_ups(1));
  EXPECT_EQ(patience.defects, 1);
  loop_.set_overseer(nullptr);
}

TEST_F(LinkTest, AConnectionThatBreaksIsMadeAnewWhateverBecomesOfTheNews) {
  Patience patience;
  connect_through_proxy();
  loop_.set_overseer(&patience);
  link_->call({"SELECT pg_sleep(60)", {}}, [](const Answer&) { throw std::bad_alloc(); });
  ASSERT_TRUE(await_sent());
  proxy_->cut();
  ASSERT_TRUE(turn_until(loop_, [&] { return patience.defects == 1; }));
  EXPECT_EQ(ask("SELECT 7").value().text(), "7");
  loop_.set_overseer(nullptr);
}

struct TurnCount final : transport::Loop::Overseer {
  void on_defect(const base::Activity&) override { throw; }
  void on_turn(base::Duration, const base::Activity&) override { ++turns; }
  int turns = 0;
};

// A call that blocks takes one turn, or two.
TEST_F(LinkTest, TenMegabytesGoAndComeAndTheLoopIsNeverHeldUp) {
  connect();
  TurnCount count;
  const std::string text(10'000'000, 'y');
  loop_.set_overseer(&count);
  const Answer answer = ask("SELECT $1::text, length($1::text)", {text});
  loop_.set_overseer(nullptr);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->number(0, 1), 10'000'000);
  EXPECT_TRUE(answer->at(0, 0) == text);
  EXPECT_GT(count.turns, 10);
}

// The proxy lives on the same loop: if that were held up, nothing would ever finish.
TEST_F(LinkTest, TheLoopIsNotHeldUpWhileAServerIsLookedForAndDoesNotAnswer) {
  connect_through_proxy();
  proxy_->to_client.mode = Proxy::Mode::hold;
  EXPECT_EQ(kind(ask_too_late("SELECT 1")), Fault::Kind::unknown);
  ASSERT_TRUE(turn_until(loop_, [&] { return proxy_->accepted() > 1; })) << "a server is looked for";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(kind(ask_too_late("SELECT 1")), Fault::Kind::never);
}

}  // namespace
}  // namespace duet::task::postgres
