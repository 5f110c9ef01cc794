#include "app/mcp/call.h"

#include <stdexcept>

#include <gtest/gtest.h>

#include "duet/peer/conversation_fixture_test.h"

namespace duet::app::mcp {
namespace {

using namespace std::chrono_literals;

/// A client's conversation whose every request becomes a call that nothing answers; there is no project.
class CallTest : public ::testing::Test {
 protected:
  CallTest() {
    talk_.methods.add_fallback([this](const rpc::Json&, const peer::Request& request, peer::Reply<> reply) {
      const bool is_tool = request.method == "tool";
      Envelope envelope{.revision = newest_legacy, .progress_token = R"("p")"};
      call_ = std::make_shared<Call>(services_, is_tool ? Call::Kind::tool : Call::Kind::request, client_,
                                     std::move(envelope), std::move(reply));
      call_->begin();
    });
  }

  void ask(const std::string& method) {
    talk_.receive(R"({"jsonrpc":"2.0","id":1,"method":")" + method + "\"}", loop_.now());
  }
  std::string after(base::Duration time) {
    clock_.advance(time);
    loop_.turn(loop_.now());
    return talk_.output();
  }
  static std::string progress(int seconds) {
    return R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":)" +
           std::to_string(seconds) + R"(,"message":"waiting for the daemon"}})" + "\n";
  }

  base::VirtualClock clock_;
  transport::Loop loop_{clock_};
  base::LogTape tape_;
  Desk desk_{loop_, tape_.log(), {}};
  Scope scope_{Scope::Options{.project = "/"}};
  ToolTable tools_{ToolTable::Choice{}};
  TaskWatch tasks_{[](EventFeed::Events) { return nullptr; }};
  Services services_{
      .loop = loop_, .log = tape_.log(), .desk = desk_, .scope = scope_, .tools = tools_, .tasks = tasks_};
  peer::Talk talk_{peer::Protocol::mcp_server()};
  std::shared_ptr<const Client> client_ = std::make_shared<Client>(Client{
      .notify = [this](std::string_view method, const rpc::Json& params) { talk_.talk->notify(method, params); }});
  std::shared_ptr<Call> call_;
};

TEST_F(CallTest, IsAnsweredWithin55Seconds) {
  ask("tool");
  after(53s);
  EXPECT_FALSE(call_->is_over());
  const std::string answer = after(2s);
  EXPECT_NE(answer.find("\"id\":1,\"result\""), answer.npos) << answer;
  EXPECT_NE(answer.find("timeout: it takes longer"), answer.npos) << answer;
  EXPECT_NE(answer.find("\"isError\":true"), answer.npos) << answer;
  EXPECT_EQ(after(100s), "");
}

TEST_F(CallTest, OneThatIsNoToolFailsAsARequest) {
  ask("request");
  const std::string answer = after(55s);
  EXPECT_NE(answer.find("\"code\":-32603"), answer.npos) << answer;
}

TEST_F(CallTest, TellsItsProgressAfterASecondAndThenAgain) {
  ask("tool");
  EXPECT_EQ(after(900ms), "");
  EXPECT_EQ(after(100ms), progress(1));
  EXPECT_EQ(after(2900ms), "");
  EXPECT_EQ(after(100ms), progress(4));
  call_->finish({.text = "done"});
  talk_.output();
  EXPECT_EQ(after(10s), "");
}

TEST_F(CallTest, AMessageThatDoesNotComeDelaysNothing) {
  ask("tool");
  int asked = 0;
  std::function<void(std::string)> late;
  call_->set_progress([&](std::function<void(std::string)> tell) {
    ++asked;
    late = std::move(tell);
  });
  EXPECT_EQ(after(1s), "");
  EXPECT_EQ(after(300ms), progress(1));
  late("too late for that one");
  EXPECT_EQ(talk_.output(), "");
  EXPECT_EQ(asked, 1);
  after(2700ms);
  EXPECT_NE(after(300ms).find("too late for that one"), std::string::npos);
}

TEST_F(CallTest, WhatAStepThrowsIsLoggedAndEndsIt) {
  ask("tool");
  call_->guard([] { throw std::runtime_error("a defect"); });
  const std::string answer = talk_.output();
  EXPECT_NE(answer.find("internal: "), answer.npos) << answer;
  EXPECT_EQ(answer.find("a defect"), answer.npos) << answer;
  ASSERT_EQ(tape_.lines().size(), 1U);
  EXPECT_NE(tape_.lines().front().find("a defect"), std::string::npos);
}

TEST_F(CallTest, AnAnswerBeyondItsBoundSaysHowLongItIs) {
  ask("tool");
  call_->set_bound(1000);
  call_->finish({.text = std::string(1001, 'x')});
  const std::string answer = talk_.output();
  EXPECT_NE(answer.find("max_bytes 1001 or more"), answer.npos) << answer;
}

}  // namespace
}  // namespace duet::app::mcp
