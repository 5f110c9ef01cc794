#include "duet/rpc/case_file_test.h"

#include <charconv>
#include <fstream>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

namespace duet::rpc {
namespace {

struct Line {
  int number = 0;
  std::string text;
};

std::vector<Line> lines_of(const std::string& file_name) {
  std::ifstream file(std::string(DUET_SOURCE_DIR) + "/tests/json/" + file_name);
  if (!file) throw std::runtime_error("cannot read " + file_name);
  std::vector<Line> lines;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!line.empty() && line[0] != '#') lines.push_back({number, line});
  }
  return lines;
}

std::string repeated(std::size_t count, std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += text;
  return out;
}

// `at` is behind the backslash; leaves it behind the escape.
std::string one_escape(std::string_view written, std::size_t& at) {
  const char letter = written[at++];
  switch (letter) {
    case 'n':
      return "\n";
    case 'r':
      return "\r";
    case 't':
      return "\t";
    case 'x': {
      int byte = 0;
      std::from_chars(written.data() + at, written.data() + at + 2, byte, 16);
      at += 2;
      return {static_cast<char>(byte)};
    }
    case '(': {
      const std::size_t blank = written.find(' ', at);
      const std::size_t close = written.find(')', blank);
      const std::size_t count = std::stoul(std::string(written.substr(at, blank - at)));
      at = close + 1;
      return repeated(count, written.substr(blank + 1, close - blank - 1));
    }
    default:
      return {letter};
  }
}

void add_json_cases(std::vector<JsonCase>& cases, std::string_view line) {
  const bool is_rule = line.starts_with("@at ");
  if (is_rule) line.remove_prefix(4);
  const bool valid = line[0] == 'y';
  line.remove_prefix(2);
  const std::size_t blank = line.find(' ');
  const std::string name(line.substr(0, blank));
  const std::string text = blank == std::string_view::npos ? "" : unescape_case(line.substr(blank + 1));
  if (!is_rule) {
    cases.push_back({name, valid, text});
    return;
  }
  for (std::size_t before = 0; before < 40; ++before) {
    const std::string whole = '"' + std::string(before, 'a') + text + std::string(40 - before, 'a') + '"';
    cases.push_back({name + '@' + std::to_string(before), valid, whole});
  }
}

}  // namespace

std::string unescape_case(std::string_view written) {
  std::string out;
  for (std::size_t at = 0; at < written.size();) {
    if (written[at] == '\\') {
      ++at;
      out += one_escape(written, at);
    } else {
      out += written[at++];
    }
  }
  return out;
}

std::vector<JsonCase> json_cases() {
  std::vector<JsonCase> cases;
  for (const Line& line : lines_of("cases.txt")) add_json_cases(cases, line.text);
  return cases;
}

std::vector<EnvelopeCase> envelope_cases() {
  constexpr std::string_view arrow = " -> ";
  std::vector<EnvelopeCase> cases;
  for (const Line& line : lines_of("envelopes.txt")) {
    const std::size_t blank = line.text.find(' ');
    const std::size_t split = line.text.rfind(arrow);
    cases.push_back({line.number, line.text.substr(0, blank),
                     unescape_case(line.text.substr(blank + 1, split - blank - 1)),
                     line.text.substr(split + arrow.size())});
  }
  return cases;
}

TEST(CaseFile, EscapesStandForTheBytesTheyName) {
  EXPECT_EQ(unescape_case(R"(a\n\r\t\\\"b)"), "a\n\r\t\\\"b");
  EXPECT_EQ(unescape_case(R"(\x00\xffz)"), std::string("\0\xffz", 3));
  EXPECT_EQ(unescape_case(R"(<\(3 ab)>)"), "<ababab>");
}

TEST(CaseFile, HoldsAtLeastThreeHundredCasesOfBothVerdicts) {
  std::size_t valid = 0;
  std::size_t invalid = 0;
  for (const JsonCase& one : json_cases()) ++(one.valid ? valid : invalid);
  EXPECT_GT(valid, 100U);
  EXPECT_GT(invalid, 150U);
  EXPECT_GT(valid + invalid, 300U);
}

}  // namespace duet::rpc
