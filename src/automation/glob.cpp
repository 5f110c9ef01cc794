#include "automation/glob.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace duet::automation {
namespace {

using Kind = PatternNode::Kind;

constexpr int deepest_braces = 20;

PatternNode one_of(CharacterSet set) { return {.kind = Kind::set, .set = std::move(set)}; }
PatternNode literal(char32_t character) { return one_of({{character, character}}); }
PatternNode within_name() { return one_of(complement({{'/', '/'}})); }
PatternNode anything() { return one_of(complement({})); }

PatternNode repeat(PatternNode part, unsigned least) {
  return {.kind = Kind::repeat, .parts = {std::move(part)}, .least = least};
}

PatternNode any_folders() {
  PatternNode folder{.parts = {repeat(within_name(), 1), literal('/')}};
  return repeat(std::move(folder), 0);
}

class GlobReader {
 public:
  explicit GlobReader(std::string_view text) : text_(text) {}

  PatternNode read() { return sequence(0); }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  char32_t take() {
    std::string_view rest = text_.substr(at_);
    const char32_t character = take_character(rest);
    at_ = text_.size() - rest.size();
    return character;
  }

  char32_t take_escaped() {
    if (at_end()) throw PatternFault("a glob cannot end with a backslash");
    return take();
  }

  bool ends_sequence(int depth) const { return at_end() || (depth > 0 && (peek() == ',' || peek() == '}')); }

  PatternNode sequence(int depth) {
    const std::size_t start = at_;
    PatternNode node;
    while (!ends_sequence(depth)) {
      const bool at_name_start = at_ == start || text_[at_ - 1] == '/';
      node.parts.push_back(element(depth, at_name_start));
    }
    return node;
  }

  PatternNode element(int depth, bool at_name_start) {
    if (peek() == '*') return stars(depth, at_name_start);
    switch (const char32_t character = take()) {
      case '?':
        return within_name();
      case '[':
        return brackets();
      case '{':
        return braces(depth + 1);
      case '\\':
        return literal(take_escaped());
      default:
        return literal(character);
    }
  }

  PatternNode stars(int depth, bool at_name_start) {
    const std::size_t count = std::min(text_.find_first_not_of('*', at_), text_.size()) - at_;
    at_ += count;
    if (count == 2 && at_name_start) {
      if (ends_sequence(depth)) return repeat(anything(), 1);
      if (peek() == '/') {
        ++at_;
        return any_folders();
      }
    }
    return repeat(within_name(), 0);
  }

  PatternNode braces(int depth) {
    if (depth > deepest_braces) throw PatternFault("the braces of a glob are nested too deeply");
    PatternNode node{.kind = Kind::choice};
    do {
      node.parts.push_back(sequence(depth));
      if (at_end()) throw PatternFault("a { in a glob has no }");
    } while (text_[at_++] == ',');
    return node;
  }

  PatternNode brackets() {
    const bool negated = peek() == '!' || peek() == '^';
    if (negated) ++at_;
    CharacterSet set;
    do {
      const char32_t first = bracketed();
      const bool range = peek() == '-' && peek(1) != ']' && peek(1) != '\0';
      if (range) ++at_;
      set.emplace_back(first, range ? bracketed() : first);
      if (set.back().second < first) throw PatternFault("a range in a glob ends before it begins");
    } while (peek() != ']');
    ++at_;
    if (negated) {
      set.emplace_back('/', '/');
      return one_of(complement(std::move(set)));
    }
    return one_of(std::move(set));
  }

  char32_t bracketed() {
    if (at_end()) throw PatternFault("a [ in a glob has no ]");
    const char32_t character = take();
    return character == '\\' ? take_escaped() : character;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string_view last_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::variant<Glob, std::string> parse_glob(std::string_view text) {
  try {
    return Glob(GlobReader(text).read());
  } catch (const PatternFault& fault) {
    return fault.what();
  }
}

IgnoreList::IgnoreList(const std::vector<std::string>& globs) {
  for (std::string_view text : globs) {
    const bool for_folders = text.ends_with('/');
    if (for_folders) text.remove_suffix(1);
    const bool for_names = text.find('/') == text.npos;
    if (text.starts_with('/')) text.remove_prefix(1);
    auto parsed = parse_glob(text);
    if (auto* glob = std::get_if<Glob>(&parsed)) entries_.push_back({std::move(*glob), for_names, for_folders});
  }
}

bool IgnoreList::ignores(std::string_view path, bool is_folder) const {
  const std::string_view name = last_name(path);
  if (name == ".git" || name == ".aiwg") return true;
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return (is_folder || !entry.for_folders) && entry.glob.matches(entry.for_names ? name : path);
  });
}

}  // namespace duet::automation
