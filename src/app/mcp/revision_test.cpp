#include "app/mcp/revision.h"

#include <gtest/gtest.h>

#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

std::string modern(const std::string& version, const std::string& more = "") {
  return R"({"_meta":{"io.modelcontextprotocol/protocolVersion":")" + version + '"' + more + "}}";
}

const std::string no_capabilities = R"(,"io.modelcontextprotocol/clientCapabilities":{})";

TEST(Revision, ARequestThatNamesItsVersionIsModernWhateverCameBefore) {
  for (const std::optional<std::string_view> before :
       {std::optional<std::string_view>(), std::optional(newest_legacy)}) {
    const auto envelope = read_envelope("tools/list", modern("2026-07-28", no_capabilities), before);
    ASSERT_TRUE(envelope);
    EXPECT_TRUE(envelope->is_modern);
    EXPECT_FALSE(envelope->has_tasks);
  }
}

TEST(Revision, AnotherVersionIsRefusedWithThoseThatAreSpoken) {
  const auto envelope = read_envelope("tools/list", modern("2030-01-01", no_capabilities), {});
  ASSERT_FALSE(envelope);
  EXPECT_EQ(envelope.error().code(), -32022);
  EXPECT_EQ(
      envelope.error().data(),
      R"({"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"2030-01-01"})");
}

TEST(Revision, AModernRequestHasToSayWhatItsClientCanDo) {
  EXPECT_EQ(read_envelope("tools/list", modern("2026-07-28"), {}).error().code(), -32602);
  const std::string tasks =
      R"(,"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}})";
  EXPECT_TRUE(read_envelope("tools/call", modern("2026-07-28", tasks), {})->has_tasks);
}

TEST(Revision, BeforeInitializeOnlyThatAndPingAreTakenOfTheLegacyEra) {
  EXPECT_TRUE(read_envelope("initialize", "{}", {}));
  EXPECT_TRUE(read_envelope("ping", "", {}));
  const auto refused = read_envelope("tools/list", "", {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), -32602);
  EXPECT_NE(refused.error().message().find("initialize"), std::string::npos);
  EXPECT_NE(refused.error().message().find("io.modelcontextprotocol/protocolVersion"), std::string::npos);
}

TEST(Revision, ParamsAreAnObject) {
  EXPECT_EQ(read_envelope("tools/list", "[1]", newest_legacy).error().code(), -32602);
}

TEST(Revision, AnUnknownVersionIsAnsweredWithTheNewestLegacyOne) {
  EXPECT_EQ(agreed_revision("2024-11-05"), "2024-11-05");
  EXPECT_EQ(agreed_revision("2026-07-28"), "2025-11-25");
  EXPECT_EQ(agreed_revision(""), "2025-11-25");
}

TEST(Revision, OnlyModernResultsSayWhatTheyAre) {
  Envelope envelope;
  EXPECT_EQ(result_text(envelope, "").text(), "{}");
  EXPECT_EQ(cacheable_text(envelope, R"("a":1)", 5).text(), R"({"a":1})");
  envelope.is_modern = true;
  const boost::json::value result = cacheable_text(envelope, R"("a":1)", 5).value();
  EXPECT_EQ(result.at("resultType"), "complete");
  EXPECT_EQ(result.at("ttlMs"), 5);
  EXPECT_EQ(result.at("cacheScope"), "private");
  EXPECT_EQ(result.at("_meta").at("io.modelcontextprotocol/serverInfo").at("name"), "duet-rpc");
}

TEST(Revision, ATokenIsATextOrANumber) {
  const auto token = [](const std::string& text) {
    return read_envelope("ping", R"({"_meta":{"progressToken":)" + text + "}}", newest_legacy)->progress_token;
  };
  for (const char* as_it_is : {"7", "1.0", "1e999", "123456789012345678901234567890", R"("a")", R"("\u0061\ud800")"}) {
    EXPECT_EQ(token(as_it_is), as_it_is);
  }
  for (const char* other : {"{}", "[7]", "null", "true"}) EXPECT_EQ(token(other), "") << other;
  EXPECT_EQ(token(R"(1,"progressToken":2)"), "2") << "the last one counts";
  const std::string longest = '"' + std::string(1022, 'x') + '"';
  EXPECT_EQ(token(longest), longest);
  const auto refused =
      read_envelope("ping", R"({"_meta":{"progressToken":"x)" + longest.substr(1) + "}}", newest_legacy);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), -32602);
}

TEST(Revision, ProgressHasItsToken) {
  const Envelope envelope{.progress_token = "1.0"};
  EXPECT_EQ(progress_text(envelope, {{"progress", 3}}).text(), R"({"progressToken":1.0,"progress":3})");
}

}  // namespace
}  // namespace duet::app::mcp
