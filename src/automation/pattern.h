#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace duet::automation {

/// Characters, as ranges of code points with both ends in it.
using CharacterSet = std::vector<std::pair<char32_t, char32_t>>;

CharacterSet complement(CharacterSet set);

/// A piece of a pattern, as globs and regular expressions are read into.
struct PatternNode {
  enum class Kind : std::uint8_t { set, sequence, choice, repeat, text_start, text_end, word_edge, inside_word };
  static constexpr unsigned without_end = ~0U;

  Kind kind = Kind::sequence;
  CharacterSet set = {};
  std::vector<PatternNode> parts = {};  ///< of a repeat: the one that is repeated
  unsigned least = 0;
  unsigned most = without_end;
};

/// What is wrong with a pattern's text.
class PatternFault : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// A pattern made ready for matching, which goes through the text once and tries all ways at the same time: the effort
/// is the text's length times the pattern's size, whatever the pattern. Text is UTF-8; a byte that is not is a
/// character of its own that only "any" and complements match.
class Pattern {
 public:
  static constexpr std::size_t most_states = 4'000;

  /// Throws PatternFault when it becomes larger than most_states.
  explicit Pattern(const PatternNode& node);

  bool matches_all_of(std::string_view text) const;
  bool matches_in(std::string_view text) const;

 private:
  using Kind = PatternNode::Kind;
  struct State {
    Kind kind;  // a choice: go on at `next` and at `other`; a sequence: just go on
    std::size_t next;
    std::size_t other = 0;
    CharacterSet set = {};
  };
  class Run;

  std::size_t add(State state);
  std::size_t compile(const PatternNode& node, std::size_t next);
  std::size_t compile_choice(const PatternNode& node, std::size_t next);
  std::size_t compile_repeat(const PatternNode& node, std::size_t next);

  std::vector<State> states_;
  std::size_t start_ = 0;
  std::size_t effort_ = 0;  // of compiling
};

/// Takes the first character off a text that is not empty. A byte that is not UTF-8 becomes one of U+DC80 to U+DCFF,
/// which no text can contain.
char32_t take_character(std::string_view& text);

}  // namespace duet::automation
