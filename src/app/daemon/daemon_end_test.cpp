#include "app/daemon/daemon_end.h"

#include <memory>
#include <string>
#include <vector>

#include <boost/json/serialize.hpp>
#include <gtest/gtest.h>

#include "duet/peer/server_fixture_test.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;
using peer::Strings;

/// Writes down what happens, in order.
struct DaemonEndTest : testing::Test {
  DaemonEndTest() {
    s.server.start(s.path);
    s.events.on_empty = [this] { end.clients_gone(); };
    end.set_work([this](StopRequest request, std::function<void()> done) {
      happened.push_back(request.force ? "end work now" : request.leave_tasks ? "leave work" : "end work");
      work_done = std::move(done);
    });
  }
  void begin(StopRequest request) {
    end.begin("a reason", request);
    s.turn();
  }
  peer::ServerSetting s;
  Strings happened;
  std::function<void()> work_done;
  ServiceManager manager;
  DaemonEnd end{s.loop, s.tape.log(), s.server,
                [this](std::string_view kind, const boost::json::object& params) {
                  happened.push_back(std::string(kind) + ' ' + boost::json::serialize(params));
                },
                manager};
};

TEST_F(DaemonEndTest, ClientsAreToldThenWorkEnds) {
  EXPECT_FALSE(end.has_begun());
  begin({});
  EXPECT_TRUE(end.has_begun());
  EXPECT_EQ(happened, (Strings{R"(daemonStopping {"reason":"a reason"})", "end work"}));
}

TEST_F(DaemonEndTest, NothingHappensBeforeWhoeverAskedIsAnswered) {
  end.begin("a reason", {});
  EXPECT_EQ(happened, Strings{});
}

TEST_F(DaemonEndTest, ARestartSaysSo) {
  begin({.leave_tasks = true, .restarting = true});
  EXPECT_EQ(happened, (Strings{R"(daemonStopping {"reason":"a reason","restarting":true})", "leave work"}));
}

TEST_F(DaemonEndTest, AStopThatLeavesTheTasksIsStillAStop) {
  begin({.leave_tasks = true});
  EXPECT_EQ(happened, (Strings{R"(daemonStopping {"reason":"a reason"})", "leave work"}));
}

TEST_F(DaemonEndTest, ASecondStopChangesNothingUnlessItIsQuicker) {
  begin({});
  begin({});
  EXPECT_EQ(happened.size(), 2U);
  begin({.force = true});
  EXPECT_EQ(happened.size(), 3U);
  EXPECT_EQ(happened.back(), "end work now");
  begin({.force = true});
  EXPECT_EQ(happened.size(), 3U);
}

TEST_F(DaemonEndTest, AStopTakesASuccessorBackAndEndsWhatWasToBeLeft) {
  const auto program = std::make_shared<const base::Fd>();
  begin({.leave_tasks = true, .successor = program});
  EXPECT_EQ(end.successor(), program);
  begin({.leave_tasks = true, .successor = std::make_shared<const base::Fd>()});
  EXPECT_EQ(end.successor(), program) << "the first one stays";
  EXPECT_EQ(happened.back(), "leave work");
  const auto left = work_done;
  begin({});
  EXPECT_EQ(end.successor(), nullptr);
  EXPECT_EQ(happened.back(), "end work");
  begin({.leave_tasks = true, .successor = program});
  EXPECT_EQ(end.successor(), nullptr) << "the stop was acknowledged";
  EXPECT_EQ(happened.size(), 3U);
  const auto client = s.connect();
  left();
  s.turn();
  EXPECT_FALSE(client->ended()) << "what was left is being ended now";
  work_done();
  s.turn();
  EXPECT_TRUE(client->ended());
}

TEST_F(DaemonEndTest, TheDoorIsOpenUntilWorkHasEnded) {
  begin({});
  const auto client = s.connect();
  EXPECT_EQ(s.ask(*client, peer::request("1", "echo", "[1]")), Strings{peer::result("1", "[1]")});
  work_done();
  s.turn();
  EXPECT_TRUE(client->ended());
  EXPECT_EQ(s.server.client_count(), 0U);
}

TEST_F(DaemonEndTest, OtherDoorsTakeNobodyFromTheBeginning) {
  end.set_doors({.count = [] { return 0; },
                 .take_nobody = [this] { happened.emplace_back("take nobody"); },
                 .stop = [this](bool) { happened.emplace_back("stop doors"); }});
  begin({});
  EXPECT_EQ(happened, (Strings{"take nobody", R"(daemonStopping {"reason":"a reason"})", "end work"}));
  begin({.force = true});
  EXPECT_EQ(happened.back(), "end work now");
  work_done();
  EXPECT_EQ(happened.back(), "stop doors");
  EXPECT_EQ(std::ranges::count(happened, "take nobody"), 1);
}

TEST_F(DaemonEndTest, AClientThatIsOwedAnAnswerIsWaitedForTwoSeconds) {
  const auto client = s.connect();
  EXPECT_EQ(s.ask(*client, peer::request("1", "late")), Strings{});
  begin({});
  work_done();
  s.turn();
  EXPECT_FALSE(client->ended());
  s.clock.advance(1999ms);
  s.turn();
  EXPECT_EQ(s.tape.lines(), Strings{});
  s.clock.advance(1ms);
  s.turn();
  EXPECT_EQ(s.tape.lines(), Strings{"warn  a client did not read its last answers"});
}

}  // namespace
}  // namespace duet::app
