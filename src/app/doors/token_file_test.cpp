#include "app/doors/token_file.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "app/words/sha256.h"

namespace duet::app {
namespace {

using namespace std::chrono_literals;

base::UtcTime at(std::int64_t milliseconds) { return base::UtcTime(std::chrono::milliseconds(milliseconds)); }

SavedTokens sample() {
  SavedTokens saved{.browsers = 7};
  saved.tokens.push_back({.name = "ci",
                          .role = "observe",
                          .sha256 = sha256("a"),
                          .created = at(1'700'000'000'123),
                          .expires = at(1'800'000'000'000)});
  saved.tokens.push_back({.name = "browser-7",
                          .role = "own",
                          .sha256 = sha256("b"),
                          .browser = true,
                          .created = at(1),
                          .used = at(1'700'000'000'456)});
  return saved;
}

// As if it had been written so.
std::string with_checksum(const std::string& lines) { return lines + "sha256 " + sha256(lines) + "\n"; }

std::string file_of(const std::string& line) {
  return with_checksum("duet-rpc tokens 1\n{\"browsers\":0}\n" + line + "\n");
}

TEST(TokenFile, GivesBackWhatWasSaved) {
  const auto again = parse_token_file(token_file_text(sample()));
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(again->browsers, 7U);
  ASSERT_EQ(again->tokens.size(), 2U);
  EXPECT_EQ(token_file_text(*again), token_file_text(sample()));
  EXPECT_EQ(again->tokens[0].name, "ci");
  EXPECT_EQ(again->tokens[0].role, "observe");
  EXPECT_EQ(again->tokens[0].sha256, sha256("a"));
  EXPECT_EQ(again->tokens[0].created, at(1'700'000'000'123));
  EXPECT_EQ(again->tokens[0].used, std::nullopt);
  EXPECT_EQ(again->tokens[0].expires, at(1'800'000'000'000));
  EXPECT_FALSE(again->tokens[0].browser);
  EXPECT_TRUE(again->tokens[1].browser);
  EXPECT_EQ(again->tokens[1].used, at(1'700'000'000'456));
  EXPECT_EQ(again->tokens[1].expires, std::nullopt);
}

TEST(TokenFile, MayHaveNoTokens) {
  const auto none = parse_token_file(token_file_text({}));
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->tokens.empty());
}

TEST(TokenFile, IsDamagedByEveryChangeOfAByteAndEveryCut) {
  const std::string text = token_file_text(sample());
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_FALSE(parse_token_file(text.substr(0, i))) << i;
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(parse_token_file(changed)) << i;
  }
  EXPECT_FALSE(parse_token_file(text + "\n"));
  EXPECT_FALSE(parse_token_file(text + text));
}

TEST(TokenFile, WithoutOneOfItsLinesIsDamaged) {
  const std::string text = token_file_text(sample());
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    EXPECT_FALSE(parse_token_file(text.substr(0, begin) + text.substr(end))) << begin;
    begin = end;
  }
}

TEST(TokenFile, OfAnotherVersionIsNotGuessedAt) {
  const auto other = parse_token_file(with_checksum("duet-rpc tokens 2\n{\"browsers\":0}\n"));
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().find("another version"), std::string::npos);
}

TEST(TokenFile, WithALineThatMakesNoSenseIsNotUsed) {
  const std::string sha = R"("sha256":")" + sha256("a") + '"';
  EXPECT_TRUE(parse_token_file(file_of(R"({"name":"a","role":"own",)" + sha + R"(,"created":1})")));
  const std::vector<std::string> lines{std::string("x"),
                                       std::string("[]"),
                                       std::string("{}"),
                                       std::string(),
                                       R"({"name":"a b","role":"own",)" + sha + R"(,"created":1})",
                                       R"({"name":"a","role":"root",)" + sha + R"(,"created":1})",
                                       R"({"name":"a","role":"unix",)" + sha + R"(,"created":1})",
                                       R"({"name":"a","role":"own","sha256":"","created":1})",
                                       R"({"name":"a","role":"own",)" + sha + "}",
                                       R"({"name":"a","role":"own",)" + sha + R"(,"created":"1"})",
                                       R"({"name":"a","role":"own",)" + sha + R"(,"created":1,"expires":-1})",
                                       R"({"name":"a","role":"own",)" + sha + R"(,"created":1,"expires":null})",
                                       R"({"name":"a","role":"own",)" + sha + R"(,"created":1,"used":1e30})",
                                       R"({"name":"a","role":"own",)" + sha + R"(,"created":1})" + "\n" +
                                           R"({"name":"a","role":"own",)" + sha + R"(,"created":1})"};
  for (const std::string& line : lines) {
    EXPECT_FALSE(parse_token_file(file_of(line))) << line;
  }
  EXPECT_FALSE(parse_token_file(with_checksum("duet-rpc tokens 1\n")));
  EXPECT_FALSE(parse_token_file(with_checksum("duet-rpc tokens 1\n{\"browsers\":-1}\n")));
}

}  // namespace
}  // namespace duet::app
