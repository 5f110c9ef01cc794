#include "app/log/trace.h"

#include <array>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "duet/base/log_tape_test.h"
#include "duet/transport/memory.h"

namespace duet::app {
namespace {

TEST(Trace, IsWantedWhenTheVariableIsSetAndNotZero) {
  EXPECT_FALSE(trace_wanted(nullptr));
  EXPECT_FALSE(trace_wanted(""));
  EXPECT_FALSE(trace_wanted("0"));
  EXPECT_TRUE(trace_wanted("1"));
  EXPECT_TRUE(trace_wanted("true"));
}

std::string submit(const std::string& params) {
  return R"({"jsonrpc":"2.0","id":1,"method":"task.submit","params":)" + params + "}";
}

TEST(WithoutSecrets, LeavesMessagesAsTheyAre) {
  for (const char* const text : {R"({"jsonrpc":"2.0","id":1.0,"method":"ping"})", R"({"id":"\u0041","result":[1e2]})",
                                 R"([{"jsonrpc":"2.0","method":"ping"}])", R"({"id":1,"error":{"code":-32601}})"}) {
    EXPECT_EQ(without_secrets(text), text);
  }
}

TEST(WithoutSecrets, HidesTheValuesOfAnEnvironment) {
  EXPECT_EQ(without_secrets(submit(R"({"prompt":"x","env":{"TOKEN":"secret","PATH":"/secret"}})")),
            submit(R"({"prompt":"x","env":{"TOKEN":"...","PATH":"..."}})"));
}

TEST(WithoutSecrets, HidesThemHoweverTheyAreWritten) {
  for (
      const std::string& message : {
          submit(R"(["x",null,0,null,null,{"TOKEN":"secret"}])"),
          submit(R"(["x",null,0,null,null,"secret"])"),
          submit(R"({"env":"secret"})"),
          submit(R"({"env":["secret"]})"),
          submit(R"({"env":{"TOKEN":{"a":["secret"]}}})"),
          submit(R"({"\u0065nv":{"TOKEN":"secret"}})"),
          submit(R"({"env":{"A":"secret"},"env":{"A":"secret"}})"),
          "[" + submit(R"({"env":{"TOKEN":"secret"}})") + ",1]",
          R"({"jsonrpc":"2.0","id":1,"m\u0065thod":"task.subm\u0069t","p\u0061rams":["x",null,0,null,null,{"A":"secret"}]})" +
              std::string(),
          R"({"jsonrpc":"2.0","id":1,"method":"task.subm\u0069t","params":["x",null,0,null,null,{"A":"secret"}]})" +
              std::string(),
      }) {
    EXPECT_EQ(without_secrets(message).find("secret"), std::string::npos) << message;
  }
}

TEST(WithoutSecrets, HidesTokensAndLoginCodes) {
  const std::string token = "duet_" + std::string(20, 'a') + "-_0" + std::string(20, 'Z');
  const std::string code = "0123456789-_abcdefghij";
  EXPECT_EQ(without_secrets(R"({"id":1,"result":{"token":")" + token + R"(","name":"a"}})"),
            R"({"id":1,"result":{"token":"duet_...","name":"a"}})");
  EXPECT_EQ(without_secrets(R"({"id":1,"result":{"code":")" + code + R"(","url":"http://x/#login=)" + code + "\"}}"),
            R"({"id":1,"result":{"code":"...","url":"http://x/#login=..."}})");
  EXPECT_EQ(without_secrets(submit(R"({"prompt":"a )" + token + R"( b","env":{"A":"x"}})")),
            submit(R"({"prompt":"a duet_... b","env":{"A":"..."}})"));
  EXPECT_EQ(without_secrets(R"({"id":1,"error":{"code":-32601,"message":"duet_rpc login=short"}})"),
            R"({"id":1,"error":{"code":-32601,"message":"duet_rpc login=short"}})");
}

TEST(WithoutSecrets, ShowsNothingOfWhatIsNoJson) {
  EXPECT_EQ(without_secrets(R"({"env":{"TOKEN":"secret")"), "");
  EXPECT_EQ(without_secrets("secret"), "");
}

TEST(WithoutSecrets, ShowsNothingOfWhatIsTooDeepToLookInto) {
  EXPECT_EQ(
      without_secrets(submit(R"({"env":{"A":"secret"},"x":)" + std::string(600, '[') + std::string(600, ']') + "}"))
          .find("secret"),
      std::string::npos);
}

struct Listener final : transport::Channel::Listener {
  void on_readable() override {}
  void on_writable() override {}
  void on_hangup() override {}
};

struct Setting {
  base::LogTape tape{base::Level::trace};
  transport::Loop loop;
  std::pair<std::unique_ptr<transport::Channel>, std::unique_ptr<transport::Channel>> pair =
      transport::memory_pair(loop);
  std::unique_ptr<transport::Channel> channel = traced(std::move(pair.first), tape.log(), 7);
  Listener listener;

  Setting() {
    channel->open(listener);
    pair.second->open(listener);
  }
  void receive(std::string_view text) {
    while (!text.empty()) {
      text.remove_prefix(pair.second->write(text).count);
      std::array<char, 4096> room;
      while (channel->read(room).state == transport::IoResult::State::some) {
      }
    }
  }
};

TEST(TracedChannel, ShowsEveryLineOfBothDirections) {
  Setting s;
  s.receive("{\"id\":1}\n{\"id\"");
  s.channel->write("[2]\n");
  s.receive(":3}\n");
  const std::vector<std::string> lines = s.tape.lines();
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], R"(trace received connection=7 bytes=8 message={"id":1})");
  EXPECT_EQ(lines[1], R"(trace sent connection=7 bytes=3 message=[2])");
  EXPECT_EQ(lines[2], R"(trace received connection=7 bytes=8 message={"id":3})");
}

}  // namespace
}  // namespace duet::app
