#include "app/methods/automation_methods.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "automation/engine_fixture_test.h"
#include "duet/peer/connection.h"
#include "duet/transport/memory.h"

namespace duet::app {
namespace {

using automation::on_save;
using peer::Outcome;

struct AutomationMethods : testing::Test {
  AutomationMethods() {
    automation::Rule careful = on_save("careful");
    careful.requires_approval = true;
    setting.configure({careful, on_save("plain", "*.c")});
    add_automation_methods(methods, *setting.engine);
    auto [ours, theirs] = transport::memory_pair(setting.loop);
    server = std::make_unique<peer::Connection>(setting.loop, std::move(ours), peer::Protocol::json_lines(), methods,
                                                setting.log, peer::ConnectionEvents{}, peer::Peer{.pid = getpid()});
    client = std::make_unique<peer::Connection>(setting.loop, std::move(theirs), peer::Protocol::json_lines_client(),
                                                none, setting.log);
    server->open();
    client->open();
  }

  Outcome call(std::string_view method, std::string_view params = {}) {
    std::optional<Outcome> result;
    client->call(method, rpc::Json::view(params), std::chrono::seconds(10),
                 [&](Outcome outcome) { result = std::move(outcome); });
    for (int i = 0; i < 100 && !result; ++i) setting.turn();
    EXPECT_TRUE(result) << method;
    return result.value_or(Outcome{});
  }

  automation::EngineSetting setting;
  peer::Methods methods;
  peer::Methods none;
  std::unique_ptr<peer::Connection> server;
  std::unique_ptr<peer::Connection> client;
};

TEST_F(AutomationMethods, StatusTellsRulesAndWhatTheyDid) {
  setting.save_file("a.c");
  const boost::json::value status = boost::json::parse(call("automation.status").result);
  EXPECT_EQ(status.at("enabled"), true);
  EXPECT_EQ(status.at("ruleCount").to_number<int>(), 2);
  EXPECT_EQ(status.at("rules").as_array().size(), 2U);
  EXPECT_EQ(status.at("recent").at(0).at("taskId").as_string(), "task-1");
  EXPECT_EQ(status.at("recent").at(1).at("reason").as_string(), "approval");
}

TEST_F(AutomationMethods, ApproveLetsAFiringGo) {
  setting.save_file("a");
  EXPECT_EQ(call("automation.approve", R"({"id":"firing-1"})").result, R"({"approved":true})");
  EXPECT_EQ(setting.submitted().size(), 1U);
  const Outcome again = call("automation.approve", R"(["firing-1"])");
  ASSERT_TRUE(again.error);
  EXPECT_EQ(again.error->code(), rpc::code::invalid_params);
  EXPECT_TRUE(call("automation.approve").error) << "which one?";
}

TEST_F(AutomationMethods, DenyTakesAFiringBack) {
  setting.save_file("a");
  EXPECT_EQ(call("automation.deny", R"({"id":"firing-1"})").result, R"({"denied":true})");
  EXPECT_TRUE(call("automation.deny", R"({"id":"firing-1"})").error);
  EXPECT_TRUE(call("automation.approve", R"({"id":"firing-1"})").error);
}

TEST_F(AutomationMethods, ARuleIsTestedFiredAndHasAHistory) {
  const boost::json::value tested =
      boost::json::parse(call("automation.test", R"({"ruleId":"plain","path":"a.h"})").result);
  EXPECT_EQ(tested.at("fires"), false);
  EXPECT_EQ(call("automation.fire", R"({"ruleId":"plain","path":"a.c"})").result,
            R"({"id":"firing-1","outcome":"fired","taskId":"task-1"})");
  EXPECT_EQ(call("automation.fire", R"(["careful"])").result,
            R"({"id":"firing-2","outcome":"held","reason":"approval"})");
  const boost::json::value history = boost::json::parse(call("automation.history", R"(["plain"])").result);
  EXPECT_EQ(history.at("firings").as_array().size(), 1U);
  EXPECT_EQ(call("automation.test", R"({"ruleId":"plain","time":"soon"})").error->code(), rpc::code::invalid_params);
  EXPECT_EQ(call("automation.test", R"({"ruleId":"plain","path":"a","taskId":"task-1"})").error->code(),
            rpc::code::invalid_params);
}

TEST_F(AutomationMethods, ATimeThatCannotBeMeantIsRefused) {
  for (const std::string time : {"2300-01-01T00:00:00Z", "2300-01-01T00:00", "1969-12-31T23:59:59Z",
                                 "2026-02-31T12:00:00Z", "2026-02-31T12:00", "2026-06-01T24:00Z", "2026-06-01"}) {
    const Outcome outcome = call("automation.test", R"({"ruleId":"plain","time":")" + time + R"("})");
    ASSERT_TRUE(outcome.error) << time;
    EXPECT_NE(outcome.error->data().find("a time such as 2026-06-01T12:00:00Z"), std::string::npos) << time;
  }
  const Outcome outcome = call("automation.test", R"({"ruleId":"plain","time":"2199-12-31T12:00"})");
  EXPECT_EQ(outcome.error->data().find("a time such as"), std::string::npos) << "the rule has no schedule";
}

TEST_F(AutomationMethods, SwitchesAnswerWhatHoldsNow) {
  EXPECT_EQ(call("automation.disable").result, R"({"enabled":false})");
  EXPECT_EQ(call("automation.enable", R"({"ruleId":"plain"})").result, R"({"enabled":true})");
  EXPECT_FALSE(setting.engine->enabled()) << "a rule's switch is not the engine's";
  EXPECT_EQ(call("automation.enable", R"({"ruleId":null})").result, R"({"enabled":true})");
  EXPECT_TRUE(setting.engine->enabled());
}

TEST_F(AutomationMethods, AnUnknownRuleIsRefusedWithTheKnownOnes) {
  for (const char* method :
       {"automation.enable", "automation.disable", "automation.test", "automation.fire", "automation.history"}) {
    const Outcome outcome = call(method, R"({"ruleId":"x"})");
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->code(), rpc::code::invalid_params);
    EXPECT_EQ(outcome.error->data(), R"({"param":"ruleId","expected":"the id of a rule","received":"x",)"
                                     R"("accepted":["careful","plain"]})");
  }
}

}  // namespace
}  // namespace duet::app
