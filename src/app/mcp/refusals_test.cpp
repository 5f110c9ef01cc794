#include "app/mcp/refusals.h"

#include <gtest/gtest.h>

#include "duet/rpc/message.h"

namespace duet::app::mcp {
namespace {

std::string told(std::string_view error) { return ToolResult::of(tool_error_of(rpc::decode_error(error), "/p")).text; }

TEST(Refusals, SeveralSymbolsAreNamed) {
  EXPECT_EQ(
      told(R"({"code":-32602,"message":"Invalid params","data":{"param":"symbol","received":"start","count":2,)"
           R"("reason":"ambiguous","candidates":[{"path":"Server::start","kind":"method","file":"/p/src/server.cpp",)"
           R"("line":41},{"path":"Client::start","kind":"method","file":"/p/src/client.cpp","line":17}]}})"),
      "ambiguous: 'start' names 2 symbols.\nTry: one of these as symbol: Server::start method src/server.cpp:41, "
      "Client::start method src/client.cpp:17.");
}

TEST(Refusals, NearNamesAreTold) {
  EXPECT_EQ(told(R"({"code":-32602,"message":"Invalid params","data":{"param":"symbol","received":"strat",)"
                 R"("reason":"not-found","near":["start","stat"]}})"),
            "not-found: no symbol is named 'strat'.\nTry: one of these: start, stat.");
}

TEST(Refusals, TheDaemonsCodesHaveNames) {
  const auto code = [](std::string_view error) { return tool_error_of(rpc::decode_error(error), "/p").code; };
  EXPECT_EQ(code(R"({"code":-32000,"message":"Unknown task","data":{"taskId":"task-9"}})"), "not-found");
  EXPECT_EQ(code(R"({"code":-32002,"message":"Queue full","data":{"capacity":3}})"), "queue-full");
  EXPECT_EQ(code(R"({"code":-32003,"message":"x","data":{"subsystem":"store"}})"), "store");
  EXPECT_EQ(code(R"({"code":-32003,"message":"x","data":{"reason":"too-deep"}})"), "too-deep");
  EXPECT_EQ(code(R"({"code":-32003,"message":"x","data":{"cause":"not-found","server":"gopls"}})"), "no-server");
  EXPECT_EQ(code(R"({"code":-32004,"message":"x","data":{"cause":"crashed","stderr":"boom"}})"), "server-failed");
  EXPECT_EQ(code(R"({"code":-32004,"message":"x","data":{"cause":"timeout"}})"), "timeout");
  EXPECT_EQ(code(R"({"code":-32602,"message":"x","data":{"param":"key","taskId":"task-1","differs":["prompt"]}})"),
            "bad-argument");
  EXPECT_EQ(code(R"({"code":-32603,"message":"Internal error"})"), "internal");
}

TEST(Refusals, AServerThatCannotSearchIsAskedAboutAFile) {
  constexpr char none[] =
      R"({"code":-32003,"message":"No language server runs: give a file","data":{"cause":"no-server"}})";
  EXPECT_NE(told(none).find("Try: code_symbols with a file of that language"), std::string::npos) << told(none);
  constexpr char pylsp[] =
      R"({"code":-32003,"message":"pylsp: not by name: give a file","data":{"cause":"no-server","server":"pylsp"}})";
  EXPECT_NE(told(pylsp).find("Try: the same call with the file to look in as 'file'"), std::string::npos)
      << told(pylsp);
}

TEST(Refusals, ANameOfTheDaemonIsThatOfTheTool) {
  EXPECT_EQ(told(R"({"code":-32602,"message":"Invalid params","data":{"param":"timeoutSeconds","expected":"seconds",)"
                 R"("received":"number"}})"),
            "bad-argument: 'time_limit_seconds' is not accepted.\nTry: give seconds.");
}

TEST(Refusals, WhatNeedsTrustNamesThePersonsCommand) {
  EXPECT_NE(told(R"({"code":-32003,"message":"x","data":{"subsystem":"agents","agent":"a","reason":"untrusted"}})")
                .find("duet-rpc trust"),
            std::string::npos);
}

}  // namespace
}  // namespace duet::app::mcp
