#include "app/methods/automation_methods.h"

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
                                                setting.log);
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

TEST_F(AutomationMethods, SwitchesAnswerWhatHoldsNow) {
  EXPECT_EQ(call("automation.disable").result, R"({"enabled":false})");
  EXPECT_EQ(call("automation.enable", R"({"ruleId":"plain"})").result, R"({"enabled":true})");
  EXPECT_FALSE(setting.engine->enabled()) << "a rule's switch is not the engine's";
  EXPECT_EQ(call("automation.enable", R"({"ruleId":null})").result, R"({"enabled":true})");
  EXPECT_TRUE(setting.engine->enabled());
}

TEST_F(AutomationMethods, AnUnknownRuleIsRefusedWithTheKnownOnes) {
  for (const char* method : {"automation.enable", "automation.disable"}) {
    const Outcome outcome = call(method, R"({"ruleId":"x"})");
    ASSERT_TRUE(outcome.error);
    EXPECT_EQ(outcome.error->code(), rpc::code::invalid_params);
    EXPECT_EQ(outcome.error->data(), R"({"param":"ruleId","expected":"the id of a rule","received":"x",)"
                                     R"("accepted":["careful","plain"]})");
  }
}

}  // namespace
}  // namespace duet::app
