#include "app/mcp/mcp_service.h"

#include <string>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <gtest/gtest.h>

#include "app/doors/rpc_exchange.h"
#include "duet/base/log_tape_test.h"
#include "duet/framing/block_pool.h"
#include "duet/rpc/value.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;

/// The service before a server that knows a few methods, and the messages that are posted to it.
class McpServiceTest : public testing::Test {
 protected:
  struct Posted {
    std::uint64_t number = 0;
    std::unique_ptr<RpcExchange> exchange = {};
    std::string answer = {};
    std::vector<std::string> told = {};
  };

  McpServiceTest() {
    server.methods().add("task.list", "", [this](const rpc::Json&, const peer::Request& request) {
      asked_by = request.conversation.peer().admission;
      return rpc::Json(boost::json::array());
    });
    server.methods().add("task.stats", "", [] { return rpc::Json(object{{"total", 0}}); });
    server.methods().add("task.get", "",
                         [this](const rpc::Json&, peer::Reply<> reply) { held.push_back(std::move(reply)); });
    server.methods().add("events.subscribe", "", [](const rpc::Json&) {
      return rpc::Json(object{{"epoch", "e"}, {"next", 1}});
    });
  }
  ~McpServiceTest() override {
    for (auto& post : posted) post->exchange.reset();
    service.end_all(true);
    turn();
  }
  void turn() {
    for (int i = 0; i < 50; ++i) loop.turn(loop.now());
  }
  Posted& post(const std::string& body, const std::shared_ptr<const peer::Admission>& who, McpFields fields = {},
               bool takes_stream = true, bool is_late = false) {
    Posted& message = *posted.emplace_back(std::make_unique<Posted>());
    message.number = server.new_number();
    McpCaller caller{.number = message.number, .admission = who, .fields = std::move(fields), .is_late = is_late};
    if (takes_stream) {
      caller.notify = [&message](std::string_view method, const rpc::Json&) { message.told.emplace_back(method); };
    }
    const McpSource::Place place = service.begin(std::move(caller));
    message.exchange = std::make_unique<RpcExchange>(
        loop, tape.log(), RpcExchange::Served{place.methods, place.protocol, false},
        peer::Peer{.connection = message.number, .admission = who}, pool, body,
        [&message] {
          while (message.exchange->left() > 0) {
            message.answer += message.exchange->next();
            message.exchange->taken(message.exchange->next().size());
          }
        },
        [this, number = message.number] { service.end(number); });
    turn();
    return message;
  }
  static std::string call(const std::string& tool, const std::string& arguments = "{}") {
    return R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":")" + tool + R"(","arguments":)" +
           arguments + "}}";
  }
  static constexpr const char* listen =
      R"({"jsonrpc":"2.0","id":"x","method":"subscriptions/listen","params":{"notifications":)"
      R"({"resourceSubscriptions":["duet://status"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
      R"("io.modelcontextprotocol/clientCapabilities":{}}}})";
  const McpFields listening{.version = "2026-07-28", .method = "subscriptions/listen"};
  std::size_t tools_of(const std::string& role) {
    const auto who =
        std::make_shared<const peer::Admission>(peer::Admission{.door = "http", .name = role, .role = role});
    const Posted& list = post(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})", who);
    return rpc::parse_value(list.answer).at("result").at("tools").as_array().size();
  }

  base::VirtualClock clock;
  transport::Loop loop{clock};
  base::LogTape tape;
  transport::TemporaryFolder folder;
  std::shared_ptr<framing::BlockPool> pool = std::make_shared<framing::BlockPool>();
  std::vector<peer::Reply<>> held;
  std::shared_ptr<const peer::Admission> asked_by;
  std::shared_ptr<const peer::Admission> owner =
      std::make_shared<const peer::Admission>(peer::Admission{.door = "http", .name = "ci", .role = "own"});
  peer::Server server{loop, tape.log()};
  McpService service{{.loop = loop, .log = tape.log(), .server = server, .root = folder.path()}};
  std::vector<std::unique_ptr<Posted>> posted;
};

TEST_F(McpServiceTest, ARoleIsOfferedWhatItMayDo) {
  EXPECT_EQ(tools_of("own"), 10U);
  EXPECT_EQ(tools_of("operate"), 5U);
  EXPECT_EQ(tools_of("observe"), 4U);
}

TEST_F(McpServiceTest, TheServerIsAskedAsWhoHasTheToken) {
  const Posted& list = post(call("task_list"), owner);
  EXPECT_NE(list.answer.find("\"structuredContent\""), std::string::npos) << list.answer;
  EXPECT_EQ(asked_by, owner);
  EXPECT_EQ(server.inside_count(), 1U);
  EXPECT_EQ(server.client_count(), 0U);
}

TEST_F(McpServiceTest, ADoorThatIsNotUsedGoesWithItsConnections) {
  EXPECT_EQ(service.door_count(), 0U);
  post(call("task_list"), owner).exchange.reset();
  EXPECT_EQ(service.door_count(), 1U);
  clock.advance(McpService::idle_time - std::chrono::seconds(1));
  turn();
  EXPECT_EQ(service.door_count(), 1U);
  post(call("task_list"), owner).exchange.reset();
  clock.advance(McpService::idle_time);
  turn();
  EXPECT_EQ(service.door_count(), 0U);
  EXPECT_EQ(server.inside_count(), 0U);
}

TEST_F(McpServiceTest, WhoGoesCancelsWhatHeAsked) {
  Posted& get = post(call("task_get", R"({"task_id":"task-1"})"), owner);
  ASSERT_EQ(held.size(), 1U);
  get.exchange.reset();
  turn();
  EXPECT_TRUE(held[0].abandoned());
}

TEST_F(McpServiceTest, AListenIsToldToItsOwnMessageAndEndsWithTheService) {
  const Posted& first = post(listen, owner, listening);
  const Posted& ping = post(R"({"jsonrpc":"2.0","id":1,"method":"ping"})", owner);
  EXPECT_EQ(first.told, std::vector<std::string>{"notifications/subscriptions/acknowledged"});
  EXPECT_TRUE(ping.told.empty());
  EXPECT_EQ(first.answer, "");
  service.end_all(false);
  turn();
  EXPECT_NE(first.answer.find(R"("resultType":"complete")"), std::string::npos) << first.answer;
  EXPECT_EQ(post(listen, owner, listening).told.size(), 1U) << "that was for now only";
}

TEST_F(McpServiceTest, WhoIsLateIsAnsweredAndKeepsNothing) {
  service.end_all(false);
  Posted& late = post(listen, owner, listening, true, true);
  EXPECT_EQ(late.told, std::vector<std::string>{"notifications/subscriptions/acknowledged"});
  EXPECT_NE(late.answer.find(R"("resultType":"complete")"), std::string::npos) << late.answer;
  Posted& list = post(call("task_list"), owner, {}, true, true);
  EXPECT_NE(list.answer.find("\"structuredContent\""), std::string::npos) << list.answer;
  EXPECT_EQ(post(listen, owner, listening).answer, "") << "the door is open again";
  late.exchange.reset();
  list.exchange.reset();
  turn();
  EXPECT_EQ(service.door_count(), 1U);
}

TEST_F(McpServiceTest, AListenThatEndsBeforeItsTasksWereFoundIsAcknowledgedFirst) {
  const std::string about_a_task =
      R"({"jsonrpc":"2.0","id":"x","method":"subscriptions/listen","params":{"notifications":)"
      R"({"resourceSubscriptions":["duet://tasks","duet://tasks/task-1"]},"_meta":)"
      R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}})";
  const Posted& waiting = post(about_a_task, owner, listening);
  ASSERT_EQ(held.size(), 1U);
  EXPECT_TRUE(waiting.told.empty());
  service.end_all(false);
  turn();
  EXPECT_EQ(waiting.told, std::vector<std::string>{"notifications/subscriptions/acknowledged"});
  EXPECT_NE(waiting.answer.find(R"("resultType":"complete")"), std::string::npos) << waiting.answer;
}

TEST_F(McpServiceTest, TheIdOfAListenIsBounded) {
  const auto listen_as = [](std::size_t size) {
    std::string text(listen);
    return text.replace(text.find(R"("x")"), 3, '"' + std::string(size - 2, 'x') + '"');
  };
  EXPECT_EQ(post(listen_as(1024), owner, listening).told.size(), 1U);
  const Posted& refused = post(listen_as(1025), owner, listening);
  EXPECT_TRUE(refused.told.empty());
  EXPECT_NE(refused.answer.find("-32602"), std::string::npos);
}

TEST_F(McpServiceTest, WhoCanBeToldNothingCannotListen) {
  EXPECT_NE(post(listen, owner, listening, false).answer.find("-32602"), std::string::npos);
  EXPECT_NE(post(listen, owner).answer.find("-32020"), std::string::npos) << "its head repeats nothing";
  const std::string legacy =
      R"({"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"duet://status"}})";
  EXPECT_NE(post(legacy, owner).answer.find("-32601"), std::string::npos);
}

TEST_F(McpServiceTest, WhatATokenHadEndsWithIt) {
  Posted& get = post(call("task_get", R"({"task_id":"task-1"})"), owner);
  service.end_session(*owner);
  turn();
  EXPECT_EQ(service.door_count(), 1U) << "somebody is inside";
  get.exchange.reset();
  turn();
  EXPECT_EQ(service.door_count(), 0U);
}

TEST_F(McpServiceTest, AfterTheEndNobodyIsAsked) {
  service.end_all(true);
  const Posted& list = post(call("task_list"), owner);
  EXPECT_NE(list.answer.find("daemon-stopped: "), std::string::npos) << list.answer;
  Posted& late = post(listen, owner, listening);
  EXPECT_EQ(late.told, std::vector<std::string>{"notifications/subscriptions/acknowledged"});
  EXPECT_NE(late.answer.find(R"("resultType":"complete")"), std::string::npos) << late.answer;
  EXPECT_EQ(server.inside_count(), 0U);
}

}  // namespace
}  // namespace duet::app::mcp
