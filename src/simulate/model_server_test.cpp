#include "simulate/model_server.h"

#include <gtest/gtest.h>

namespace duet::simulate {
namespace {

using namespace std::chrono_literals;

class ModelServerTest : public testing::Test {
 protected:
  std::shared_ptr<ServerConnection> connect(std::size_t host = 0) {
    std::shared_ptr<ServerConnection> made;
    server.connect(host, [&made](const std::shared_ptr<ServerConnection>& connection) { made = connection; });
    pass(6s);
    return made;
  }

  void ask(const std::shared_ptr<ServerConnection>& connection) {
    server.request(connection, "hello_v1", {}, [this](const ModelDatabase::Answer&) { ++answers; });
  }

  void pass(base::Duration time) {
    const base::TimePoint until = clock.now() + time;
    while (agenda.next() && *agenda.next() <= until) {
      clock.advance(std::max(*agenda.next() - clock.now(), base::Duration::zero()));
      agenda.do_next();
    }
    clock.advance(until - clock.now());
  }

  ModelServerTest() {
    server.carried_out = [this](std::size_t, std::string_view, const std::vector<Argument>&) { ++done; };
  }

  base::VirtualClock clock{base::UtcTime(1'800'000'000s)};
  Agenda agenda{clock};
  Trace trace;
  ModelDatabase database{clock, Random(1)};
  ModelServer server{agenda, database, trace, 2, Random(1)};
  int done = 0;
  int answers = 0;
};

TEST_F(ModelServerTest, WhatIsAskedIsDoneAndAnswered) {
  ask(connect());
  pass(1s);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(answers, 1);
}

TEST_F(ModelServerTest, AServerThatIsDownDoesNothing) {
  const auto connection = connect();
  ask(connection);  // and has not arrived
  server.set_up(false);
  ask(connection);  // its daemon has not heard of it yet
  pass(60s);
  EXPECT_EQ(connect(), nullptr);
  EXPECT_EQ(done, 0);
  server.set_up(true);
  ask(connection);
  pass(60s);
  EXPECT_EQ(done, 0) << "over a connection that broke";
  ask(connect());
  pass(1s);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(answers, 1);
}

TEST_F(ModelServerTest, AMachineThatIsRefusedCallsNothing) {
  const auto connection = connect();
  const auto other = connect(1);
  int broken = 0;
  connection->broken = [&broken] { ++broken; };
  server.set_cut(0, ModelServer::Cut::refused);
  ask(connection);
  pass(60s);
  EXPECT_EQ(done, 0);
  EXPECT_EQ(broken, 2) << "once for the cut, and once for what was sent since";
  ask(other);
  pass(1s);
  EXPECT_EQ(done, 1);
}

TEST_F(ModelServerTest, WhatWaitsForASilentNetworkIsDoneIfThatIsBackInTime) {
  const auto connection = connect();
  server.set_cut(0, ModelServer::Cut::silent);
  ask(connection);
  pass(5s);
  EXPECT_EQ(done, 0);
  server.set_cut(0, ModelServer::Cut::none);
  pass(1s);
  EXPECT_EQ(done, 1);
  server.set_cut(0, ModelServer::Cut::silent);
  ask(connection);
  pass(20s);
  server.set_cut(0, ModelServer::Cut::none);
  pass(60s);
  EXPECT_EQ(done, 1) << "it was given up";
}

TEST_F(ModelServerTest, ACallThatIsLostIsNotDoneAndOneWhoseAnswerIsLostIs) {
  server.habits = {.requests_lost = 10'000};
  ask(connect());
  pass(1s);
  EXPECT_EQ(done, 0);
  server.habits = {.answers_lost = 10'000};
  ask(connect());
  pass(1s);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(answers, 0);
}

}  // namespace
}  // namespace duet::simulate
