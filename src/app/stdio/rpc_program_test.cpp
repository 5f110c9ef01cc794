#include <signal.h>

#include <fstream>
#include <functional>

#include <gtest/gtest.h>

#include "app/stdio/running_program_test.h"
#include "duet/transport/temporary_folder_test.h"

// The daemon's end, seen from outside, with handlers that block: only a test build has such.
#ifdef DUET_TEST_METHODS

namespace duet::app {
namespace {

using namespace std::chrono_literals;

constexpr auto ceiling = 2000ms;
constexpr auto busy_machine = 30s;  // what may come on top where several tests run at once; else it would be for ever

constexpr std::string_view shutdown_request = R"({"jsonrpc":"2.0","id":"bye","method":"shutdown"})";
constexpr std::string_view shutdown_answer =
    R"({"jsonrpc":"2.0","id":"bye","result":{"message":"Shutting down gracefully"}})";
const std::vector<std::string> has_patience{"DUET_RPC_TEST_PATIENCE=60000"};  // a busy machine takes none of it

constexpr std::string_view slept = R"({"jsonrpc":"2.0","id":1,"result":{"slept":true}})";

std::string request(std::string_view method, std::string_view params = "{}") {
  return R"({"jsonrpc":"2.0","id":1,"method":")" + std::string(method) + R"(","params":)" + std::string(params) + "}";
}

/// One way to ask the daemon to end, and what it then says.
struct Ending {
  const char* name;
  std::function<void(RunningProgram&)> ask;
  const char* line;
};

const Ending by_signal{"SIGTERM", [](RunningProgram& daemon) { daemon.signal(SIGTERM); },
                       "info  received SIGTERM, shutting down gracefully"};
const Ending by_end_of_input{"end of input", [](RunningProgram& daemon) { daemon.close_input(); },
                             "info  stdin closed, shutting down gracefully"};
const Ending by_shutdown{"shutdown", [](RunningProgram& daemon) { daemon.send(shutdown_request); },
                         "info  shutdown requested, shutting down gracefully"};

class RpcProgram : public testing::Test {
 protected:
  static void start(RunningProgram& daemon, std::string_view method, std::string_view params = "{}") {
    daemon.send(request(method, params));
    ASSERT_TRUE(daemon.logs("Request method=\"" + std::string(method) + "\"")) << daemon.log();
  }

  static void expect_end_in_time(RunningProgram& daemon, const Ending& ending) {
    EXPECT_EQ(daemon.exit_code_within(ceiling + busy_machine), 0) << ending.name;
    EXPECT_NE(daemon.log().find(ending.line), std::string::npos) << ending.name << "\n" << daemon.log();
  }
};

TEST_F(RpcProgram, AHandlerThatBlocksTheLoopForEverHoldsNoExit) {
  for (const Ending& ending : {by_signal, by_end_of_input}) {
    RunningProgram daemon({"rpc", "--log-level", "debug"});
    start(daemon, "test.block");
    ending.ask(daemon);
    expect_end_in_time(daemon, ending);
    EXPECT_EQ(daemon.rest_of_output(), "");
  }
}

TEST_F(RpcProgram, AHandlerThatNeverAnswersHoldsNoExit) {
  for (const Ending& ending : {by_signal, by_end_of_input, by_shutdown}) {
    RunningProgram daemon({"rpc", "--log-level", "debug"});
    start(daemon, "test.block_late");
    ending.ask(daemon);
    expect_end_in_time(daemon, ending);
    EXPECT_EQ(daemon.rest_of_output(), "") << ending.name;
  }
}

TEST_F(RpcProgram, AHandlerThatTakesASecondIsAnsweredFirst) {
  for (const char* method : {"test.sleep", "test.sleep_late"}) {
    for (const Ending& ending : {by_signal, by_end_of_input, by_shutdown}) {
      RunningProgram daemon({"rpc", "--log-level", "debug"}, has_patience);
      start(daemon, method, R"({"ms":1000})");
      ending.ask(daemon);
      EXPECT_EQ(daemon.next_body(), slept) << method << ", " << ending.name;
      if (ending.name == by_shutdown.name) {
        EXPECT_EQ(daemon.next_body(), shutdown_answer) << method;
      }
      expect_end_in_time(daemon, ending);
      EXPECT_EQ(daemon.rest_of_output(), "");
    }
  }
}

TEST_F(RpcProgram, ASignalDropsTheFramesThatHaveNotBegun) {
  for (const char* method : {"test.await", "test.await_late"}) {
    const transport::TemporaryFolder folder;
    RunningProgram daemon({"rpc", "--log-level", "debug"}, has_patience);
    const std::string first = request(method, R"({"file":")" + folder.file("go") + "\"}");
    const std::string second = request("version");
    daemon.send_bytes("Content-Length: " + std::to_string(first.size()) + "\r\n\r\n" + first +
                      "Content-Length: " + std::to_string(second.size()) + "\r\n\r\n" + second);
    ASSERT_TRUE(daemon.logs(method));
    daemon.signal(SIGTERM);
    ASSERT_TRUE(daemon.logs(by_signal.line));
    std::ofstream(folder.file("go")) << "";
    EXPECT_EQ(daemon.next_body(), slept) << method;
    expect_end_in_time(daemon, by_signal);
    EXPECT_EQ(daemon.rest_of_output(), "") << method;
  }
}

TEST_F(RpcProgram, AnEndOfInputBehindAPausedReaderHoldsNoExit) {
  RunningProgram daemon({"rpc"});
  std::string portion;
  const std::string body = request("describeMethods");
  for (int i = 0; i < 5000; ++i) portion += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  std::size_t portions = 0;
  while (daemon.send_what_is_taken(portion, 1000ms) == portion.size() && portions < 1000) ++portions;
  ASSERT_LT(portions, 1000U) << "reading never paused";
  daemon.close_input();
  EXPECT_EQ(daemon.exit_code_within(ceiling + busy_machine), 0);
}

TEST_F(RpcProgram, WhatAHandlerThrowsStaysInside) {
  RunningProgram daemon({"rpc"});
  daemon.send(request("test.throw"));
  EXPECT_EQ(daemon.next_body(), R"({"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}})");
  EXPECT_TRUE(daemon.logs(R"(error Handler failed method="test.throw" id=1 what="secret detail")"));
  daemon.send(shutdown_request);
  EXPECT_EQ(daemon.next_body(), shutdown_answer) << "it lives on";
  EXPECT_EQ(daemon.exit_code_within(ceiling + busy_machine), 0);
}

}  // namespace
}  // namespace duet::app

#endif
