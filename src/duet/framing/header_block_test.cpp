#include "duet/framing/header_block.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace duet::framing {
namespace {

using Kind = HeaderLine::Kind;

std::optional<Fault> content_fault(const std::string& value) {
  const HeaderLine line = read_header_line("Content-Type: " + value);
  EXPECT_EQ(line.kind, Kind::content_type) << value;
  return line.content_fault;
}

// The block that ends with the last blank line of the text.
std::string block_in(const std::string& text, bool at_line_start = true) {
  const std::size_t end = text.rfind("\r\n\r\n");
  const FoundBlock block = find_block(text, end, at_line_start);
  return block ? text.substr(block.start, end - block.start) : "none";
}

bool has_rival(const std::string& text) { return find_block(text, text.rfind("\r\n\r\n"), true).has_rival; }

TEST(HeaderLine, ALengthIsPlainDecimalDigitsWithSpacesAndTabsAround) {
  for (const char* line :
       {"Content-Length: 42", "Content-Length:42", "content-LENGTH:\t 42 \t", "CONTENT-LENGTH: 0042"}) {
    const HeaderLine read = read_header_line(line);
    EXPECT_EQ(read.kind, Kind::length) << line;
    EXPECT_EQ(read.length, 42U) << line;
  }
}

TEST(HeaderLine, AnythingElseIsABadLength) {
  for (const char* value : {"", " ", "-1", "+1", "4 2", "0x10", "1e3", "42;", "1.0", "42\r", "\xD9\xA1", "42,42"}) {
    EXPECT_EQ(read_header_line(std::string("Content-Length:") + value).kind, Kind::bad_length) << value;
  }
}

TEST(HeaderLine, ALengthOfTooManyDigitsIsTheLargestNumber) {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(read_header_line("Content-Length: 18446744073709551615").length, most);
  EXPECT_EQ(read_header_line("Content-Length: 18446744073709551616").length, most);
  EXPECT_EQ(read_header_line("Content-Length: 18446744073709551620").length, most);
  EXPECT_EQ(read_header_line("Content-Length: 99999999999999999999999999").length, most);
  EXPECT_EQ(read_header_line("Content-Length: 18446744073709551614").length, most - 1);
  EXPECT_EQ(read_header_line("Content-Length: 000000000000000000000000000007").length, 7U);
}

TEST(HeaderLine, UnknownNamesAreFineIfTheyAreNames) {
  for (const char* line : {"X: y", "a:", "0-9:x", "-: ", "Content-Lengths: x", "X-Content-Length: x", "X: a:b: c"}) {
    EXPECT_EQ(read_header_line(line).kind, Kind::other) << line;
  }
}

TEST(HeaderLine, WithoutAColonOrWithAnotherNameItIsMalformed) {
  for (const char* line : {"", "abc", ":", ": x", " a: b", "a b: c", "Content-Length : 5", "a_b: c", "{\"a\": 1}",
                           "\ta: b", "é: x", "a"}) {
    EXPECT_EQ(read_header_line(line).kind, Kind::malformed) << line;
  }
}

TEST(HeaderLine, EveryByteOtherThanLettersDigitsAndDashMakesANameMalformed) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const bool fine =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == ':';
    EXPECT_EQ(read_header_line(std::string("x") + c + "y: z").kind, fine ? Kind::other : Kind::malformed) << byte;
  }
}

TEST(ContentType, OfVscodeJsonrpcInUtf8IsFineHoweverItIsWritten) {
  for (const char* value :
       {"application/vscode-jsonrpc", "application/vscode-jsonrpc; charset=utf-8",
        "application/vscode-jsonrpc;charset=utf8", "APPLICATION/VSCode-JsonRPC; CHARSET=UTF-8",
        "application/vscode-jsonrpc; charset=\"utf-8\"", "application/vscode-jsonrpc ; a=b ; charset = UTF8 ; c=d",
        "application/vscode-jsonrpc; charset=utf-8; a=\"x;charset=latin1\"", "application/vscode-jsonrpc;",
        "application/vscode-jsonrpc; a", "\tapplication/vscode-jsonrpc;\tcharset=utf-8\t",
        R"(application/vscode-jsonrpc; charset="utf\-8")", R"(application/vscode-jsonrpc; charset="\U\T\F\8")",
        R"(application/vscode-jsonrpc; a="\";charset=latin1"; charset=utf-8)",
        R"(application/vscode-jsonrpc; a="b\\"; charset=utf-8)"}) {
    EXPECT_EQ(content_fault(value), std::nullopt) << value;
  }
}

TEST(ContentType, OfAnotherMediaTypeIsUnsupported) {
  for (const char* value :
       {"", "application/json", "application/json; charset=utf-8", "text/plain", "application/vscode-jsonrpcx",
        "application/vscode-jsonrp", "charset=utf-8", "; charset=utf-8", "application/json; charset=latin1"}) {
    EXPECT_EQ(content_fault(value), Fault::unsupported_content_type) << value;
  }
}

TEST(ContentType, OfAnotherCharsetIsABadOne) {
  for (const char* charset :
       {"iso-8859-1", "utf-16", "\"utf-7\"", "", "\"\"", "\"utf-8", "utf_8", "utf-8x", "'utf-8'"}) {
    EXPECT_EQ(content_fault(std::string("application/vscode-jsonrpc; charset=") + charset), Fault::bad_charset)
        << charset;
  }
  EXPECT_EQ(content_fault("application/vscode-jsonrpc; a=b; charset=latin1; c=d"), Fault::bad_charset);
  EXPECT_EQ(content_fault(R"(application/vscode-jsonrpc; a="b\\"; charset=latin1)"), Fault::bad_charset);
  EXPECT_EQ(content_fault(R"(application/vscode-jsonrpc; a="\";charset=utf-8"; charset="utf\-7")"), Fault::bad_charset);
  EXPECT_EQ(content_fault(R"(application/vscode-jsonrpc; charset="utf-8\")"), Fault::bad_charset);
  EXPECT_EQ(content_fault(R"(application/vscode-jsonrpc; charset=utf\-8)"), Fault::bad_charset);
  EXPECT_EQ(content_fault("application/vscode-jsonrpc; charset=utf-8; charset=latin1"), Fault::bad_charset);
}

TEST(PartialHeaderLine, MayBecomeOneAsLongAsItIsANameOrANameAndAColon) {
  for (const char* partial : {"", "\r", "a", "Content-Len", "a:", "a: b", "a:\r", "a: {\"x\""}) {
    EXPECT_TRUE(may_become_header_line(partial)) << partial;
  }
  for (const char* partial : {" ", ":", "\rx", "a ", "a\r", "{", "a_", "\xC3"}) {
    EXPECT_FALSE(may_become_header_line(partial)) << partial;
  }
}

TEST(HeaderBlock, TakesOneLengthAndItsEqualsOnly) {
  HeaderBlock block;
  EXPECT_FALSE(block.length());
  EXPECT_TRUE(block.add(read_header_line("X: y")));
  EXPECT_TRUE(block.add(read_header_line("Content-Length: 5")));
  EXPECT_TRUE(block.add(read_header_line("Content-Length: 05")));
  EXPECT_EQ(block.length(), 5U);
  EXPECT_FALSE(block.add(read_header_line("Content-Length: 6")));
  EXPECT_FALSE(block.add(read_header_line("Content-Length: x")));
  EXPECT_FALSE(block.add(read_header_line("nonsense")));
}

TEST(HeaderBlock, RemembersTheFirstContentFault) {
  HeaderBlock block;
  EXPECT_TRUE(block.add(read_header_line("Content-Type: application/vscode-jsonrpc")));
  EXPECT_EQ(block.content_fault(), std::nullopt);
  EXPECT_TRUE(block.add(read_header_line("Content-Type: application/vscode-jsonrpc; charset=x")));
  EXPECT_TRUE(block.add(read_header_line("Content-Type: text/plain")));
  EXPECT_EQ(block.content_fault(), Fault::bad_charset);
}

TEST(HeaderBlock, IsReadFromItsLines) {
  const HeaderBlock block = read_block("X: y\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n");
  EXPECT_EQ(block.length(), 5U);
  EXPECT_EQ(block.content_fault(), Fault::unsupported_content_type);
  EXPECT_EQ(read_block("").length(), std::nullopt);
}

TEST(BlockSearch, FindsTheNextBlankLine) {
  EXPECT_EQ(find_block_end("ab\r\n\r\n", 0), 2U);
  EXPECT_EQ(find_block_end("ab\r\n\r\n", 2), 2U);
  EXPECT_EQ(find_block_end("ab\r\n\r\n", 3), no_block);
  EXPECT_EQ(find_block_end("\r\r\n\r\n", 0), 1U);
  EXPECT_EQ(find_block_end("\r\n\r\n\r\n", 1), 2U);
  EXPECT_EQ(find_block_end("a\n\n\r\n\r", 0), no_block);
  EXPECT_EQ(find_block_end("", 0), no_block);
}

TEST(BlockSearch, FindsTheLongestRunOfWellFormedLines) {
  EXPECT_EQ(block_in("junk!\r\nA: b\r\nContent-Length: 5\r\nC: d\r\n\r\n"), "A: b\r\nContent-Length: 5\r\nC: d");
  EXPECT_EQ(block_in("A: b\nContent-Length: 5\r\n\r\n"), "Content-Length: 5");
  EXPECT_EQ(block_in("Content-Length: 5\r\n\r\n"), "Content-Length: 5");
}

TEST(BlockSearch, NeedsAValidLength) {
  EXPECT_EQ(block_in("A: b\r\n\r\n"), "none");
  EXPECT_EQ(block_in("Content-Length: x\r\n\r\n"), "none");
  EXPECT_EQ(block_in("Content-Length: 5\r\n!\r\n\r\n"), "none");
  EXPECT_EQ(block_in("\r\n\r\n"), "none");
  EXPECT_EQ(block_in("Content-Length: 5\r\n\r\nA: b\r\n\r\n"), "none");
}

TEST(BlockSearch, MayBeginInTheMiddleOfALineAsOneOfTheTwoKnownHeaders) {
  EXPECT_EQ(block_in("{\"x\":1}Content-Length: 5\r\n\r\n"), "Content-Length: 5");
  EXPECT_EQ(block_in("{}cONTENT-lENGTH:5\r\nA: b\r\n\r\n"), "cONTENT-lENGTH:5\r\nA: b");
  EXPECT_EQ(block_in("{}Content-Type: a/b\r\nContent-Length: 5\r\n\r\n"), "Content-Type: a/b\r\nContent-Length: 5");
  EXPECT_EQ(block_in("{}Other: t\r\nContent-Length: 5\r\n\r\n"), "Content-Length: 5");
  EXPECT_EQ(block_in("{}Content-Type: a/b\r\nA: b\r\n\r\n"), "none");
}

TEST(BlockSearch, ALineThatLooksLikeAnotherHeaderMayHideTheStartOfABlock) {
  EXPECT_EQ(block_in("junkContent-Length: 5\r\n\r\n"), "Content-Length: 5");
  EXPECT_EQ(block_in("A: Content-Length: 5\r\nB: c\r\n\r\n"), "Content-Length: 5\r\nB: c");
  EXPECT_EQ(block_in("A: Content-Length: 5\r\nContent-Length: 6\r\n\r\n"), "A: Content-Length: 5\r\nContent-Length: 6");
  EXPECT_EQ(block_in("Content-Length: 6\r\nContent-TyContent-Length: 5\r\n\r\n"), "Content-Length: 5");
  EXPECT_EQ(block_in("Content-Type: applicContent-Length: 5\r\n\r\n"), "Content-Length: 5");
}

TEST(BlockSearch, ABrokenHeaderDoesNotHideTheGoodOneBehindIt) {
  EXPECT_EQ(block_in("Content-Length: 4\r\nContent-Length: 5\r\n\r\n"), "Content-Length: 5");
  EXPECT_EQ(block_in("Content-Length: x\r\nContent-Length: 5\r\n\r\n"), "Content-Length: 5");
  EXPECT_EQ(block_in("Content-Length: 4Content-Length: 5\r\n\r\n"), "Content-Length: 5");
  EXPECT_EQ(block_in("Content-Length:Content-Length: 5\r\n\r\n"), "Content-Length: 5");
  EXPECT_EQ(block_in("{\"a\":\"Content-Length: 7\"}Content-Length: 5\r\n\r\n"), "Content-Length: 5");
}

TEST(BlockSearch, TellsWhetherAnotherLengthIsInTheBlockOrRightAboveIt) {
  EXPECT_TRUE(has_rival("Content-Length: 4\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_TRUE(has_rival("Content-Length: 4\r\nA: b\r\nContent-Length: 5\r\nC: d\r\n\r\n"));
  EXPECT_TRUE(has_rival("{}Content-Length: 4\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_TRUE(has_rival("A: Content-Length: 4\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_TRUE(has_rival("AContent-Length: 4\r\nB: c\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_FALSE(has_rival("A: Content-Length: 5\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_FALSE(has_rival("Content-Length: 5\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_FALSE(has_rival("Content-Length: x\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_FALSE(has_rival("Content-Length: 4\r\n!\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_FALSE(has_rival("Content-Length: 4\r\n\r\nContent-Length: 5\r\n\r\n"));
  EXPECT_FALSE(has_rival("Content-Length: 4\nContent-Length: 5\r\n\r\n"));
}

TEST(BlockSearch, TextInsideAStringIsNoHeader) {
  EXPECT_EQ(block_in("{\"a\":\"Content-Length: 7\"}\r\n\r\n"), "none");
  EXPECT_EQ(block_in("\"Content-Length: 7\",\r\n\r\n"), "none");
  EXPECT_EQ(block_in("{\"a\":\"Content-Type: a/b\"}\r\nContent-Length: 7\r\n\r\n"), "Content-Length: 7");
  EXPECT_EQ(block_in("{\"a\":\"\nContent-Type: a/b\"}\r\nContent-Length: 7\r\n\r\n"), "Content-Length: 7");
  EXPECT_EQ(block_in("{\"a\":\"Content-Type: a/b; c\",\"d\":\"e\"}\r\nContent-Length: 7\r\n\r\n"), "Content-Length: 7");
  EXPECT_EQ(block_in("{\"a\":\"Content-Type: a/b\"}Content-Type: c/d; e=\"f g\"\r\nContent-Length: 7\r\n\r\n"),
            "Content-Type: c/d; e=\"f g\"\r\nContent-Length: 7");
  EXPECT_EQ(block_in("{}Content-Type: c/d; e=\"\\\"}\"\r\nContent-Length: 7\r\n\r\n"),
            "Content-Type: c/d; e=\"\\\"}\"\r\nContent-Length: 7");
  EXPECT_EQ(block_in("{}Content-Type: c/d; e=\"f\\\"\r\nContent-Length: 7\r\n\r\n"), "Content-Length: 7");
}

TEST(BlockSearch, TextThatBeginsInTheMiddleOfALineHasNoFirstLine) {
  EXPECT_EQ(block_in("ngth: 5\r\nContent-Length: 6\r\n\r\n", false), "Content-Length: 6");
  EXPECT_EQ(block_in("Content-Length: 6\r\n\r\n", false), "Content-Length: 6");
}

TEST(BlockSearch, ABlockHasAtMost8192BytesItsEndIncluded) {
  const std::string length = "Content-Length: 5\r\n";
  const auto padding = [](std::size_t size) { return "A: " + std::string(size - 5, 'x') + "\r\n"; };
  const std::string fits = length + padding(max_header - length.size() - 2);
  ASSERT_EQ(fits.size() + 2, max_header);
  const std::string one_more = length + padding(max_header - length.size() - 1);
  for (const std::string before : {"", "junk!\n", "junk"}) {
    EXPECT_NE(block_in(before + fits + "\r\n"), "none") << before;
    EXPECT_EQ(block_in(before + one_more + "\r\n"), "none") << before;
  }
  EXPECT_EQ(block_in("!\r\n" + padding(100) + fits + "\r\n").size(), max_header - 4);
}

}  // namespace
}  // namespace duet::framing
