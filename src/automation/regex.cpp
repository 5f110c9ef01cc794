#include "automation/regex.h"

#include <cctype>
#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>

namespace duet::automation {
namespace {

using Kind = PatternNode::Kind;

constexpr int deepest_groups = 50;
constexpr unsigned most_repeats = 1'000;

// What a letter behind a backslash stands for; the capital is the complement.
std::optional<CharacterSet> class_of(char32_t letter) {
  switch (letter) {
    case 'd':
      return CharacterSet{{'0', '9'}};
    case 'w':
      return CharacterSet{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    case 's':
      return CharacterSet{{'\t', '\r'}, {' ', ' '}};
    case 'D':
    case 'W':
    case 'S':
      return complement(*class_of(letter - 'A' + 'a'));
    default:
      return std::nullopt;
  }
}

// The letters of a set in the other case as well.
CharacterSet with_both_cases(CharacterSet set) {
  for (std::size_t i = 0, count = set.size(); i < count; ++i) {
    const auto [first, last] = set[i];
    for (char32_t letter = 'A'; letter <= 'Z'; ++letter) {
      const char32_t small = letter - 'A' + 'a';
      if (first <= letter && letter <= last) set.emplace_back(small, small);
      if (first <= small && small <= last) set.emplace_back(letter, letter);
    }
  }
  return set;
}

class RegexReader {
 public:
  explicit RegexReader(std::string_view text) : text_(text) {}

  PatternNode read() {
    any_case_ = skip("(?i)");
    PatternNode node = choice(0);
    if (!at_end()) throw PatternFault("a ) in the regular expression has no (");
    return node;
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  bool next_is(char c) const { return !at_end() && text_[at_] == c; }

  bool skip(std::string_view expected) {
    const bool found = text_.substr(at_).starts_with(expected);
    if (found) at_ += expected.size();
    return found;
  }

  char32_t take() {
    std::string_view rest = text_.substr(at_);
    const char32_t character = take_character(rest);
    at_ = text_.size() - rest.size();
    return character;
  }

  PatternNode set_of(CharacterSet set) const {
    return {.kind = Kind::set, .set = any_case_ ? with_both_cases(std::move(set)) : std::move(set)};
  }

  PatternNode choice(int depth) {
    if (depth > deepest_groups) throw PatternFault("the groups of the regular expression are nested too deeply");
    PatternNode node{.kind = Kind::choice};
    do {
      node.parts.push_back(sequence(depth));
    } while (skip("|"));
    return node;
  }

  PatternNode sequence(int depth) {
    PatternNode node;
    while (!at_end() && !next_is('|') && !next_is(')')) node.parts.push_back(repeated(element(depth)));
    return node;
  }

  PatternNode element(int depth) {
    switch (const char32_t character = take()) {
      case '.':
        return {.kind = Kind::set, .set = complement({{'\n', '\n'}})};
      case '^':
        return {.kind = Kind::text_start};
      case '$':
        return {.kind = Kind::text_end};
      case '(':
        return group(depth + 1);
      case '[':
        return brackets();
      case '\\':
        return escape();
      case '*':
      case '+':
      case '?':
        throw PatternFault("nothing stands before a *, + or ? of the regular expression");
      default:
        return set_of({{character, character}});
    }
  }

  PatternNode group(int depth) {
    if (!skip("?:") && next_is('?')) {
      throw PatternFault("only (?: may begin with (? in the regular expression, and (?i) at its start");
    }
    PatternNode node = choice(depth);
    if (!skip(")")) throw PatternFault("a ( in the regular expression has no )");
    return node;
  }

  PatternNode escape() {
    if (skip("b")) return {.kind = Kind::word_edge};
    if (skip("B")) return {.kind = Kind::inside_word};
    return set_of(escaped_set());
  }

  CharacterSet escaped_set() {
    if (at_end()) throw PatternFault("the regular expression cannot end with a backslash");
    const char32_t character = take();
    if (std::optional<CharacterSet> set = class_of(character)) return std::move(*set);
    const char32_t meant = escaped_character(character);
    return {{meant, meant}};
  }

  static char32_t escaped_character(char32_t character) {
    constexpr std::string_view letters = "ntrfv";
    constexpr std::string_view meanings = "\n\t\r\f\v";
    if (character >= 0x80 || !std::isalnum(static_cast<int>(character))) return character;
    const std::size_t which = letters.find(static_cast<char>(character));
    if (which != letters.npos) return static_cast<char32_t>(meanings[which]);
    throw PatternFault(std::string("\\") + static_cast<char>(character) + " is unknown in the regular expression");
  }

  PatternNode brackets() {
    const bool negated = skip("^");
    CharacterSet set;
    do {
      append_bracketed(set);
    } while (!next_is(']'));
    ++at_;
    PatternNode node = set_of(std::move(set));
    if (negated) node.set = complement(std::move(node.set));
    return node;
  }

  void append_bracketed(CharacterSet& set) {
    if (skip("[:")) throw PatternFault("[: is unknown in the regular expression; use \\d, \\w or \\s");
    const CharacterSet first = bracketed();
    const bool range = next_is('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
    if (!range) {
      set.insert(set.end(), first.begin(), first.end());
      return;
    }
    ++at_;
    const CharacterSet last = bracketed();
    const bool single = first.size() == 1 && last.size() == 1 && first[0].first == first[0].second;
    if (!single || last[0].first != last[0].second || last[0].first < first[0].first) {
      throw PatternFault("a range in the regular expression ends before it begins");
    }
    set.emplace_back(first[0].first, last[0].first);
  }

  CharacterSet bracketed() {
    if (at_end()) throw PatternFault("a [ in the regular expression has no ]");
    if (skip("\\")) return escaped_set();
    const char32_t character = take();
    return {{character, character}};
  }

  PatternNode repeated(PatternNode node) {
    std::optional<PatternNode> around = repetition();
    if (!around) return node;
    skip("?");  // whether as little as possible is taken makes no difference to whether it is found
    if (repetition()) throw PatternFault("a repetition in the regular expression is repeated; put it into (?: )");
    around->parts.push_back(std::move(node));
    return std::move(*around);
  }

  std::optional<PatternNode> repetition() {
    if (skip("*")) return PatternNode{.kind = Kind::repeat};
    if (skip("+")) return PatternNode{.kind = Kind::repeat, .least = 1};
    if (skip("?")) return PatternNode{.kind = Kind::repeat, .most = 1};
    return counted_repetition();
  }

  std::optional<unsigned> count() {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc{}) return std::nullopt;
    at_ = static_cast<std::size_t>(end - text_.data());
    if (value > most_repeats) throw PatternFault("a repetition in the regular expression goes to 1000 at most");
    return value;
  }

  // `{2}`, `{2,}` or `{2,5}`; anything else in braces is text.
  std::optional<PatternNode> counted_repetition() {
    const std::size_t start = at_;
    const std::optional<unsigned> least = skip("{") ? count() : std::nullopt;
    const std::optional<unsigned> most = skip(",") ? count() : least;
    if (!least || !skip("}")) {
      at_ = start;
      return std::nullopt;
    }
    const PatternNode node{.kind = Kind::repeat, .least = *least, .most = most.value_or(PatternNode::without_end)};
    if (node.most < node.least) throw PatternFault("a repetition in the regular expression ends before it begins");
    return node;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool any_case_ = false;
};

}  // namespace

std::variant<Regex, std::string> parse_regex(std::string_view text) {
  try {
    return Regex(RegexReader(text).read());
  } catch (const PatternFault& fault) {
    return fault.what();
  }
}

}  // namespace duet::automation
