#include "app/mcp/status_answer.h"

#include <boost/json/array.hpp>
#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;

StatusParts parts() {
  return {
      .daemon = rpc::parse_value(R"({"pid":7,"version":"0.2.0","health":"degraded","startedBy":"mcp",)"
                                 R"("problems":[{"subsystem":"trust","message":"not trusted"}]})"),
      .servers = rpc::parse_value(R"({"servers":[{"name":"clangd","state":"ready","root":"/p","indexing":"1/2"}]})"),
      .counts = rpc::parse_value(R"({"total":1,"queued":1})"),
      .automation = rpc::parse_value(
          R"({"enabled":true,"ruleCount":2,"recent":[{"id":"firing-3","ruleId":"r","at":"now","would":"run x"},)"
          R"({"id":"firing-2","ruleId":"r","at":"then"}]})")};
}

TEST(StatusAnswer, ShowsWhatAPersonHasToDecide) {
  const ToolResult result = status_answer(status_of_parts(parts(), "/p"), 16'000);
  EXPECT_EQ(result.structured->at("trusted"), false);
  EXPECT_EQ(rpc::to_text(result.structured->at("automation")),
            R"({"enabled":true,"rules":2,"waiting_for_approval":[{"id":"firing-3","rule":"r","at":"now"}]})");
  for (const char* told : {"duet-rpc trust", "duet-rpc automation approve firing-3", "started by mcp", "clangd, ready",
                           "indexing", "root /p"}) {
    EXPECT_NE(result.text.find(told), std::string::npos) << told << '\n' << result.text;
  }
}

TEST(StatusAnswer, WithoutADaemonSaysSoAndMakesNothingUp) {
  const ToolResult result = status_answer(status_without_daemon("/p", true, std::nullopt), 16'000);
  EXPECT_EQ(rpc::to_text(*result.structured),
            R"({"daemon":{"running":false,"problems":[]},"trusted":true,"language_servers":[],"tasks":{"counts":{}},)"
            R"("automation":{},"events":[],"root":"/p"})");
  EXPECT_EQ(
      result.text,
      "daemon not running; the first call of a code or task tool starts it\ntrusted: true\nno language server has "
      "been used\ntasks: not known\nautomation: not known\nroot /p");
}

TEST(StatusAnswer, ADaemonThatNoCallStartsIsAProblem) {
  const ToolError refusal{.code = "daemon-stopped", .problem = "a person has stopped it", .remedy = "start it"};
  const ToolResult result = status_answer(status_without_daemon("/p", true, refusal), 16'000);
  EXPECT_EQ(rpc::to_text(result.structured->at("daemon").at("problems")),
            R"([{"subsystem":"daemon","message":"a person has stopped it: start it"}])");
  EXPECT_TRUE(result.text.starts_with("daemon not running\nproblem: daemon: a person has stopped it: start it\n"))
      << result.text;
}

TEST(StatusAnswer, EventsThatDoNotFitAreLeftForTheNextCall) {
  object status = status_of_parts(parts(), "/p");
  for (int seq = 1; seq <= 500; ++seq) {
    status["events"].as_array().push_back(object{{"seq", seq}, {"kind", "taskQueued"}, {"task_id", "task-1"}});
  }
  status["next_event"] = 501;
  const ToolResult result = status_answer(std::move(status), 2000);
  EXPECT_LE(result.text.size(), 2000U);
  EXPECT_LE(rpc::to_text(*result.structured).size(), 2000U);
  const std::size_t shown = result.structured->at("events").as_array().size();
  EXPECT_GT(shown, 0U);
  EXPECT_EQ(result.structured->at("next_event").to_number<std::size_t>(), shown + 1);
}

}  // namespace
}  // namespace duet::app::mcp
