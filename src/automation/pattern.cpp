#include "automation/pattern.h"

#include <algorithm>
#include <optional>

#include "duet/rpc/utf8.h"

namespace duet::automation {
namespace {

constexpr char32_t last_character = 0x10FFFF;
constexpr std::size_t accepting = 0;

bool contains(const CharacterSet& set, char32_t character) {
  return std::any_of(set.begin(), set.end(),
                     [character](const auto& range) { return character >= range.first && character <= range.second; });
}

bool is_word(std::optional<char32_t> character) {
  static const CharacterSet word{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return character && contains(word, *character);
}

PatternFault too_large() { return PatternFault("the pattern is too large"); }

}  // namespace

char32_t take_character(std::string_view& text) {
  const std::size_t length = rpc::utf8_length(text.data(), text.data() + text.size());
  const auto first = static_cast<unsigned char>(text.front());
  char32_t character = first;
  if (length == 0) character += 0xDC00;
  if (length > 1) character &= 0x7FU >> length;
  for (std::size_t i = 1; i < length; ++i) character = character << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
  text.remove_prefix(std::max<std::size_t>(length, 1));
  return character;
}

CharacterSet complement(CharacterSet set) {
  std::sort(set.begin(), set.end());
  CharacterSet rest;
  char32_t from = 0;
  for (const auto& [first, last] : set) {
    if (first > from) rest.emplace_back(from, first - 1);
    from = std::max<char32_t>(from, last + 1);
  }
  if (from <= last_character) rest.emplace_back(from, last_character);
  return rest;
}

Pattern::Pattern(const PatternNode& node) {
  add({.kind = Kind::sequence, .next = accepting});
  start_ = compile(node, accepting);
}

std::size_t Pattern::add(State state) {
  if (states_.size() == most_states) throw too_large();
  states_.push_back(std::move(state));
  return states_.size() - 1;
}

// From the end to the beginning, since each state names the one after it.
std::size_t Pattern::compile(const PatternNode& node, std::size_t next) {
  if (++effort_ > 4 * most_states) throw too_large();  // repetitions of nothing add no states, but take time
  switch (node.kind) {
    case Kind::sequence:
      for (auto part = node.parts.rbegin(); part != node.parts.rend(); ++part) next = compile(*part, next);
      return next;
    case Kind::choice:
      return compile_choice(node, next);
    case Kind::repeat:
      return compile_repeat(node, next);
    default:
      return add({.kind = node.kind, .next = next, .set = node.set});
  }
}

std::size_t Pattern::compile_choice(const PatternNode& node, std::size_t next) {
  std::size_t start = compile(node.parts.back(), next);
  for (auto part = node.parts.rbegin() + 1; part != node.parts.rend(); ++part) {
    start = add({.kind = Kind::choice, .next = compile(*part, next), .other = start});
  }
  return start;
}

std::size_t Pattern::compile_repeat(const PatternNode& node, std::size_t next) {
  const PatternNode& part = node.parts.front();
  std::size_t start = next;
  if (node.most == PatternNode::without_end) {
    const std::size_t loop = add({.kind = Kind::choice, .next = next, .other = next});
    const std::size_t body = compile(part, loop);
    states_[loop].other = body;
    start = loop;
  } else {
    for (unsigned i = node.least; i < node.most; ++i) {
      start = add({.kind = Kind::choice, .next = compile(part, start), .other = next});
    }
  }
  for (unsigned i = 0; i < node.least; ++i) start = compile(part, start);
  return start;
}

/// One way through a text: the states that could be the current one.
class Pattern::Run {
 public:
  Run(const Pattern& pattern, bool anywhere)
      : pattern_(pattern), anywhere_(anywhere), entered_(pattern.states_.size(), no_round) {}

  bool matches(std::string_view text) {
    std::optional<char32_t> before;
    while (!text.empty()) {
      std::string_view rest = text;
      const char32_t character = take_character(rest);
      settle(before, character);
      if (anywhere_ && accepted_) return true;
      step(character);
      if (!anywhere_ && reached_.empty()) return false;
      before = character;
      text = rest;
    }
    settle(before, std::nullopt);
    return accepted_;
  }

 private:
  static constexpr std::size_t no_round = ~std::size_t{0};

  // Follows everything that consumes no character.
  void settle(std::optional<char32_t> before, std::optional<char32_t> after) {
    if (round_ == 0 || anywhere_) reached_.push_back(pattern_.start_);
    waiting_.clear();
    accepted_ = false;
    while (!reached_.empty()) {
      const std::size_t index = reached_.back();
      reached_.pop_back();
      if (entered_[index] == round_) continue;
      entered_[index] = round_;
      accepted_ = accepted_ || index == accepting;
      enter(index, before, after);
    }
    ++round_;
  }

  void enter(std::size_t index, std::optional<char32_t> before, std::optional<char32_t> after) {
    const State& state = pattern_.states_[index];
    const bool edge = is_word(before) != is_word(after);
    switch (state.kind) {
      case Kind::set:
        waiting_.push_back(index);
        return;
      case Kind::choice:
        reached_.push_back(state.other);
        break;
      case Kind::text_start:
        if (before) return;
        break;
      case Kind::text_end:
        if (after) return;
        break;
      case Kind::word_edge:
        if (!edge) return;
        break;
      case Kind::inside_word:
        if (edge) return;
        break;
      default:
        break;
    }
    reached_.push_back(state.next);
  }

  void step(char32_t character) {
    for (const std::size_t index : waiting_) {
      const State& state = pattern_.states_[index];
      if (contains(state.set, character)) reached_.push_back(state.next);
    }
  }

  const Pattern& pattern_;
  bool anywhere_;
  bool accepted_ = false;
  std::size_t round_ = 0;
  std::vector<std::size_t> entered_;  // in which round, by state
  std::vector<std::size_t> reached_;
  std::vector<std::size_t> waiting_;
};

bool Pattern::matches_all_of(std::string_view text) const { return Run(*this, false).matches(text); }
bool Pattern::matches_in(std::string_view text) const { return Run(*this, true).matches(text); }

}  // namespace duet::automation
