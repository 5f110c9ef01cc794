#include "bridge/handshake.h"

#include <gtest/gtest.h>

#include "duet/peer/conversation.h"
#include "duet/rpc/value.h"

namespace duet::bridge {
namespace {

Capabilities read(const std::string& result) { return read_initialize_result(result).value(); }

TEST(HandshakeTest, SaysWhoItIsAndWhatItCanCount) {
  const boost::json::value params = rpc::parse_value(initialize_params("/a b/c", "9.9"));
  EXPECT_EQ(params.at("rootUri"), "file:///a%20b/c");
  EXPECT_EQ(params.at("workspaceFolders").at(0).at("name"), "c");
  EXPECT_EQ(params.at("clientInfo").at("version"), "9.9");
  EXPECT_EQ(params.at("capabilities").at("general").at("positionEncodings").as_array().size(), 3U);
}

TEST(HandshakeTest, ReadsEveryFormOfDocumentSync) {
  const Capabilities number = read(R"({"capabilities":{"textDocumentSync":1}})");
  EXPECT_TRUE(number.takes_documents);
  EXPECT_EQ(number.sync, Capabilities::Sync::full);
  const Capabilities none = read(R"({"capabilities":{"textDocumentSync":0}})");
  EXPECT_FALSE(none.takes_documents);
  const Capabilities object = read(R"({"capabilities":{"textDocumentSync":{"openClose":true,"change":2,"save":{}}}})");
  EXPECT_TRUE(object.takes_documents);
  EXPECT_EQ(object.sync, Capabilities::Sync::incremental);
  EXPECT_TRUE(object.wants_saves);
  const Capabilities silent = read(R"({"capabilities":{}})");
  EXPECT_TRUE(silent.takes_documents);
  EXPECT_EQ(silent.sync, Capabilities::Sync::full);
  EXPECT_EQ(silent.encoding, Encoding::utf16);
}

TEST(HandshakeTest, TellsWhatIsOffered) {
  const Capabilities some = read(
      R"({"capabilities":{"hoverProvider":true,"renameProvider":false,"diagnosticProvider":{}},"serverInfo":{"name":"x"}})");
  EXPECT_TRUE(some.offers("hoverProvider"));
  EXPECT_FALSE(some.offers("renameProvider"));
  EXPECT_FALSE(some.offers("definitionProvider"));
  EXPECT_TRUE(some.pulls_diagnostics);
  EXPECT_EQ(some.server_name, "x");
}

TEST(HandshakeTest, TakesNothingForAnAnswerThatIsNone) {
  for (const char* result : {"null", "[]", "{}", R"({"capabilities":5})", R"({"capabilities":null})"}) {
    EXPECT_FALSE(read_initialize_result(result)) << result;
  }
  std::string deep = R"({"capabilities":)";
  for (int i = 0; i < 600; ++i) deep += R"({"a":)";
  deep += "1";
  deep.append(601, '}');
  EXPECT_FALSE(read_initialize_result(deep));
}

// What a server that asks for its configuration is answered.
std::string configuration(const std::string& params) {
  peer::Methods methods;
  add_answers_to_server(methods, "/a");
  peer::Conversation client(peer::Protocol::json_lines(), methods);
  client.receive(R"({"jsonrpc":"2.0","id":1,"method":"workspace/configuration","params":)" + params + "}\n", {});
  const std::string answer(client.output());
  const std::string start = R"({"jsonrpc":"2.0","id":1,"result":)";
  EXPECT_TRUE(answer.starts_with(start)) << answer;
  return answer.substr(start.size(), answer.size() - start.size() - 2);
}

TEST(HandshakeTest, AnswersConfigurationWithAsManyValues) {
  EXPECT_EQ(configuration(R"({"items":[{},{}]})"), "[null,null]");
  EXPECT_EQ(configuration(R"({"items":[]})"), "[]");
  EXPECT_EQ(configuration(R"({"items":5})"), "[]");
  EXPECT_EQ(configuration("null"), "[]");
}

}  // namespace
}  // namespace duet::bridge
