#include "app/methods/stdio_methods.h"

#include <map>
#include <optional>
#include <set>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "duet/base/log_sink.h"
#include "duet/peer/connection.h"
#include "duet/rpc/json_text.h"
#include "duet/transport/memory.h"
#include "duet/version.h"

namespace duet::app {
namespace {

using peer::Outcome;

class StdioMethods : public testing::Test {
 protected:
  StdioMethods() {
    add_stdio_methods(
        methods_, log_,
        {.shut_down = [this] { ++shutdowns_; }, .watch_process = [this](std::int64_t pid) { watched_ = pid; }});
    auto [ours, theirs] = transport::memory_pair(loop_);
    server_ = std::make_unique<peer::Connection>(loop_, std::move(ours), peer::Protocol::lsp_server(), methods_, log_);
    client_ = std::make_unique<peer::Connection>(loop_, std::move(theirs), peer::Protocol::lsp_client(), none_, log_);
    server_->open();
    client_->open();
  }

  Outcome call(std::string_view method, std::string_view params = {}) {
    std::optional<Outcome> result;
    client_->call(method, rpc::Json::view(params), std::chrono::seconds(10),
                  [&](Outcome outcome) { result = std::move(outcome); });
    while (!result) loop_.turn();
    return *result;
  }

  std::string data_of_refusal(std::string_view method, std::string_view params) {
    const Outcome outcome = call(method, params);
    EXPECT_EQ(outcome.cause, Outcome::Cause::refused) << params;
    if (!outcome.error) return {};
    EXPECT_EQ(outcome.error->code(), rpc::code::invalid_params) << params;
    return outcome.error->data();
  }

  transport::Loop loop_;
  base::Log log_{base::stderr_sink(false)};
  peer::Methods methods_;
  peer::Methods none_;
  int shutdowns_ = 0;
  std::optional<std::int64_t> watched_;
  std::unique_ptr<peer::Connection> server_;
  std::unique_ptr<peer::Connection> client_;
};

const std::string version = kVersion;

TEST_F(StdioMethods, InitializeTellsWhoWeAre) {
  EXPECT_EQ(call("initialize").result,
            R"({"serverInfo":{"name":"duet-rpc","version":")" + version + R"("},"protocolVersion":"2.0"})");
}

TEST_F(StdioMethods, InitializeWatchesTheProcessItIsTold) {
  call("initialize", R"({"rootUri":null,"processId":4711,"capabilities":{"x":[1]}})");
  EXPECT_EQ(watched_, 4711);
  call("initialize", R"({"process\u0049d":12.0})");
  EXPECT_EQ(watched_, 12);
}

TEST_F(StdioMethods, InitializeIgnoresEverythingElse) {
  for (const char* params : {"{}", "[]", "null", "[4711]", R"({"processId":null})", R"({"processId":"4711"})",
                             R"({"processId":1.5})", R"({"processId":true})", R"({"processId":[1]})",
                             R"({"processId":{}})", R"({"processId":1e99})", R"({"pid":3})"}) {
    EXPECT_EQ(call("initialize", params).cause, Outcome::Cause::answered) << params;
    EXPECT_EQ(watched_, std::nullopt) << params;
  }
}

TEST_F(StdioMethods, TheListsNameTheSixMethodsInOrder) {
  const std::vector<std::string> six{"initialize", "listMethods", "describeMethods",
                                     "version",    "setLogLevel", "shutdown"};
  for (const char* method : {"listMethods", "describeMethods"}) {
    std::vector<std::string> names;
    const boost::json::value listed = boost::json::parse(call(method).result);
    for (const auto& entry : listed.as_array()) {
      names.emplace_back(entry.at("name").as_string());
    }
    EXPECT_EQ(names, six);
  }
}

TEST_F(StdioMethods, EveryMethodIsDescribedInWords) {
  const boost::json::value listed = boost::json::parse(call("listMethods").result);
  for (const auto& entry : listed.as_array()) {
    EXPECT_EQ(entry.as_object().size(), 2U);
    EXPECT_GT(entry.at("description").as_string().size(), 10U);
  }
}

TEST_F(StdioMethods, SignaturesAreReadable) {
  const boost::json::value described = boost::json::parse(call("describeMethods").result);
  EXPECT_EQ(described.at(4),
            boost::json::parse(R"({"name":"setLogLevel","params":["level: string"],"returns":"object"})"));
  EXPECT_EQ(described.at(1), boost::json::parse(R"({"name":"listMethods","params":[],"returns":"array"})"));
}

TEST_F(StdioMethods, VersionIsTheVersion) { EXPECT_EQ(call("version").result, R"({"version":")" + version + R"("})"); }

TEST_F(StdioMethods, SetLogLevelChangesTheLogAndNormalisesTheName) {
  for (const auto& [params, level] :
       std::map<std::string, base::Level>{{R"({"level":"debug"})", base::Level::debug},
                                          {R"({"level":"DEBUG"})", base::Level::debug},
                                          {R"(["Info"])", base::Level::info},
                                          {R"({"level":"\u0065rror","more":1})", base::Level::error},
                                          {R"(["wArN",2])", base::Level::warn}}) {
    EXPECT_EQ(call("setLogLevel", params).result,
              R"({"level":")" + std::string(base::level_name(level)) + R"(","success":true})");
    EXPECT_EQ(log_.level(), level);
  }
}

TEST_F(StdioMethods, SetLogLevelRefusesOtherLevelsAndChangesNothing) {
  log_.set_level(base::Level::error);
  EXPECT_EQ(data_of_refusal("setLogLevel", R"({"level":"loud"})"),
            R"({"param":"level","expected":"string","received":"loud","accepted":["debug","info","warn","error"]})");
  EXPECT_EQ(log_.level(), base::Level::error);
}

// For every parameter there is, every type it does not take, by name and by position.
TEST_F(StdioMethods, EveryParameterRefusesEveryWrongType) {
  log_.set_level(base::Level::error);
  const std::map<std::string, std::string> values{{"string", R"("x")"}, {"integer", "5"}, {"boolean", "true"},
                                                  {"object", "{}"},     {"array", "[]"},  {"null", "null"}};
  int checked = 0;
  const boost::json::value listed = boost::json::parse(call("listMethods").result);
  for (const auto& entry : listed.as_array()) {
    const peer::Method& method = *methods_.find(std::string_view(entry.at("name").as_string()));
    for (const rpc::Param& param : method.params) {
      ASSERT_EQ(&param, method.params.data()) << "with more than one, this test must fill in those before";
      for (const auto& [type, value] : values) {
        if (type == rpc::name_of(param.type)) continue;
        for (const std::string& params : {"{" + rpc::quoted(param.name) + ":" + value + "}", "[" + value + "]"}) {
          const std::string data = data_of_refusal(method.name, params);
          EXPECT_EQ(boost::json::parse(data).at("param").as_string(), param.name) << params;
          ++checked;
        }
      }
    }
  }
  EXPECT_EQ(checked, 10);
}

TEST_F(StdioMethods, ShutdownAnswersAndActs) {
  EXPECT_EQ(call("shutdown").result, R"({"message":"Shutting down gracefully"})");
  EXPECT_EQ(shutdowns_, 1);
}

TEST_F(StdioMethods, DiscoverGivesAnOpenRpcDocument) {
  const boost::json::value document = boost::json::parse(call("rpc.discover").result);
  EXPECT_EQ(document.at("info").at("version").as_string(), version);
  std::set<std::string> names;
  for (const auto& method : document.at("methods").as_array()) names.emplace(method.at("name").as_string());
  EXPECT_EQ(names, (std::set<std::string>{"initialize", "listMethods", "describeMethods", "version", "setLogLevel",
                                          "shutdown"}));
}

TEST_F(StdioMethods, ExitIsNoMethod) {
  log_.set_level(base::Level::error);
  EXPECT_EQ(call("exit").error->code(), rpc::code::method_not_found);
}

}  // namespace
}  // namespace duet::app
