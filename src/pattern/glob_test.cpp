#include "pattern/glob.h"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace duet::pattern {
namespace {

bool matches(std::string_view text, std::string_view path) {
  auto parsed = parse_glob(text);
  EXPECT_TRUE(std::holds_alternative<Glob>(parsed)) << text << ": " << std::get<std::string>(parsed);
  return std::get<Glob>(parsed).matches(path);
}

std::string fault(std::string_view text) {
  auto parsed = parse_glob(text);
  return std::holds_alternative<Glob>(parsed) ? "accepted" : std::get<std::string>(parsed);
}

TEST(Glob, StarAndQuestionMarkStayWithinAName) {
  EXPECT_TRUE(matches("src/*.cpp", "src/a.cpp"));
  EXPECT_TRUE(matches("src/*.cpp", "src/.cpp"));
  EXPECT_FALSE(matches("src/*.cpp", "src/deep/a.cpp"));
  EXPECT_FALSE(matches("*.cpp", "src/a.cpp"));
  EXPECT_TRUE(matches("?", "ä"));
  EXPECT_TRUE(matches("?", "\xFF")) << "a byte that is no UTF-8 is a character too";
  EXPECT_FALSE(matches("??", "ä"));
  EXPECT_FALSE(matches("a?b", "a/b"));
  EXPECT_TRUE(matches("src/*.c", "src/caf\xE9\n.c"));
  EXPECT_TRUE(matches("src/**", "src/\xE9/\n"));
}

TEST(Glob, TwoStarsAreAnyNumberOfFolders) {
  for (const char* path : {"src/a.cpp", "src/x/a.cpp", "src/x/y/a.cpp"}) {
    EXPECT_TRUE(matches("src/**/*.cpp", path)) << path;
  }
  EXPECT_FALSE(matches("src/**/*.cpp", "srcs/a.cpp"));
  EXPECT_TRUE(matches("**/a", "a"));
  EXPECT_TRUE(matches("**/a", "x/y/a"));
  EXPECT_FALSE(matches("**/a", "xa"));
  EXPECT_TRUE(matches("src/**", "src/x/y"));
  EXPECT_FALSE(matches("src/**", "src"));
  EXPECT_TRUE(matches("**", "x/y"));
  EXPECT_FALSE(matches("a**b", "a/b")) << "not a whole name, so like one star";
}

TEST(Glob, BracketsBracesAndBackslashes) {
  EXPECT_TRUE(matches("[a-c]x", "bx"));
  EXPECT_FALSE(matches("[!a-c]x", "bx"));
  EXPECT_FALSE(matches("[^a]", "/"));
  EXPECT_TRUE(matches("[]-]", "]"));
  EXPECT_TRUE(matches("[]-]", "-"));
  EXPECT_TRUE(matches("[ä-ö]", "ö"));
  EXPECT_TRUE(matches("{a,b{c,d},}x", "bdx"));
  EXPECT_TRUE(matches("{a,b{c,d},}x", "x"));
  EXPECT_TRUE(matches("{src/**,test}/*.c", "src/x/a.c"));
  EXPECT_TRUE(matches("\\*\\{,", "*{,"));
  EXPECT_TRUE(matches("[a-ö-]", "-")) << "a range ends where it ends";
  EXPECT_FALSE(matches("[[:alpha:]]", "a"));
  EXPECT_TRUE(matches("a.(b|c)+$", "a.(b|c)+$")) << "what means something elsewhere means nothing here";
  EXPECT_TRUE(matches("a,b}", "a,b}"));
}

TEST(Glob, SaysWhatIsWrong) {
  EXPECT_EQ(fault("a{b"), "a { in a glob has no }");
  EXPECT_EQ(fault("a[b"), "a [ in a glob has no ]");
  EXPECT_EQ(fault("[]"), "a [ in a glob has no ]");
  EXPECT_EQ(fault("[b-a]"), "invalid character class range at 'b-a'");
  EXPECT_EQ(fault("a\\"), "a glob cannot end with a backslash");
  EXPECT_EQ(fault(std::string(100'000, '{')), "a { in a glob has no }");
  EXPECT_EQ(fault(std::string(100'000, 'a')), "the pattern is too large");
}

TEST(Glob, TakesNoLongerForPatternsThatInviteToTryEverything) {
  std::string pattern;
  for (int i = 0; i < 40; ++i) pattern += "{a*,*a,**a}";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(matches(pattern + "b", std::string(4'000, 'a')));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20)) << "tried one by one it has no end";
}

// What a glob means, by trying everything: pieces of a pattern against all ways to cut the path.
using Piece = std::string;
using EncodedMessage = std::vector<Piece>;

bool tried(const EncodedMessage& pieces, std::size_t at, std::string_view path) {
  if (at == pieces.size()) return path.empty();
  const Piece& piece = pieces[at];
  if (piece == "*" || piece == "**") {
    const bool everything = piece == "**";  // only made for the end
    if (everything) return !path.empty();
    for (std::size_t cut = 0; cut <= path.size(); ++cut) {
      if (tried(pieces, at + 1, path.substr(cut))) return true;
      if (cut < path.size() && path[cut] == '/') return false;
    }
    return false;
  }
  if (piece == "**/") {
    for (std::size_t cut = 0; cut <= path.size(); ++cut) {
      const bool after_folder = cut == 0 || (path[cut - 1] == '/' && cut > 1 && path[cut - 2] != '/');
      if (cut > 0 && path[cut - 1] == '/' && !after_folder) return false;
      if (after_folder && tried(pieces, at + 1, path.substr(cut))) return true;
    }
    return false;
  }
  if (piece == "{a,bc}") {
    for (const std::string_view word : {"a", "bc"}) {
      if (path.starts_with(word) && tried(pieces, at + 1, path.substr(word.size()))) return true;
    }
    return false;
  }
  if (path.empty()) return false;
  const char c = path.front();
  const bool fits = piece == "?"      ? c != '/'
                    : piece == "[!a]" ? c != '/' && c != 'a'
                    : piece == "[ab]" ? c == 'a' || c == 'b'
                                      : c == piece[0];
  return fits && tried(pieces, at + 1, path.substr(1));
}

EncodedMessage any_pieces() {
  using rc::gen::element;
  EncodedMessage pieces;
  for (const auto& name : *rc::gen::resize(4, rc::gen::container<std::vector<EncodedMessage>>(rc::gen::resize(
                                                  5, rc::gen::container<EncodedMessage>(element<Piece>(
                                                         "a", "b", "c", "*", "?", "[ab]", "[!a]", "{a,bc}")))))) {
    if (*rc::gen::inRange(0, 3) == 0) pieces.push_back("**/");
    for (const Piece& piece : name) {
      if (piece != "*" || pieces.empty() || pieces.back() != "*") pieces.push_back(piece);
    }
    pieces.push_back("/");
  }
  if (*rc::gen::arbitrary<bool>()) {
    pieces.push_back("**");
  } else if (!pieces.empty()) {
    pieces.pop_back();
  }
  return pieces;
}

RC_GTEST_PROP(Glob, AgreesWithTryingEverything, ()) {
  const EncodedMessage pieces = any_pieces();
  std::string text;
  for (const Piece& piece : pieces) text += piece;
  for (int i = 0; i < 20; ++i) {
    const auto path = *rc::gen::resize(10, rc::gen::container<std::string>(rc::gen::element('a', 'b', 'c', '/')));
    RC_LOG() << text << " on " << path;
    RC_ASSERT(matches(text, path) == tried(pieces, 0, path));
  }
}

RC_GTEST_PROP(Glob, AnyTextIsReadOrRefused, (const std::string& text, const std::string& path)) {
  auto parsed = parse_glob(text);
  if (const auto* glob = std::get_if<Glob>(&parsed)) glob->matches(path);
}

}  // namespace
}  // namespace duet::pattern
