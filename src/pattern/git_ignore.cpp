#include "pattern/git_ignore.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace duet::pattern {
namespace {

using ByteSet = std::bitset<256>;

// A path has no more bytes. What is longer was written to cost time.
constexpr std::size_t longest_line = 4096;
constexpr std::size_t most_parts = 20'000;  // of the patterns of a file

std::size_t index_of(char byte) { return static_cast<unsigned char>(byte); }

// Up to the first character that is more than itself.
std::size_t literal_length(std::string_view text) { return std::min(text.find_first_of("*?[\\"), text.size()); }

struct NamedClass {
  std::string_view name;
  int (*has)(int);
};
int is_space(int byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r' ? 1 : 0; }  // git's own

constexpr std::array<NamedClass, 12> named_classes{{{"alnum", std::isalnum},
                                                    {"alpha", std::isalpha},
                                                    {"blank", std::isblank},
                                                    {"cntrl", std::iscntrl},
                                                    {"digit", std::isdigit},
                                                    {"graph", std::isgraph},
                                                    {"lower", std::islower},
                                                    {"print", std::isprint},
                                                    {"punct", std::ispunct},
                                                    {"space", is_space},
                                                    {"upper", std::isupper},
                                                    {"xdigit", std::isxdigit}}};

/// Reads what stands between brackets, in the way of git's wildmatch.c, whose oddities people may rely on.
class ClassReader {
 public:
  /// `at` is behind the opening bracket.
  ClassReader(std::string_view text, std::size_t at) : text_(text), at_(at) {}

  /// None if it is not one: then the whole pattern matches nothing.
  std::optional<ByteSet> read() {
    const bool negated = here() == '!' || here() == '^';
    if (negated) ++at_;
    do {
      if (!element()) return std::nullopt;
      ++at_;
    } while (here() != ']');
    ++at_;
    if (negated) bytes_.flip();
    return bytes_;
  }
  /// Behind the closing bracket.
  std::size_t end() const { return at_; }

 private:
  char here(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  bool element() {
    if (here() == '\0') return false;
    if (here() == '\\') {
      ++at_;
      return here() != '\0' && add(here());
    }
    if (here() == '-' && before_ != '\0' && here(1) != '\0' && here(1) != ']') return range();
    if (here() == '[' && here(1) == ':') return named();
    return add(here());
  }

  bool add(char byte) {
    bytes_.set(index_of(byte));
    before_ = byte;
    return true;
  }

  bool range() {
    ++at_;
    if (here() == '\\' && (++at_, here() == '\0')) return false;
    for (std::size_t byte = index_of(before_); byte <= index_of(here()); ++byte) bytes_.set(byte);
    before_ = '\0';
    return true;
  }

  bool named() {
    const std::size_t start = at_ + 2;
    const std::size_t close = text_.find(']', start);
    if (close == text_.npos) return false;
    if (close == start || text_[close - 1] != ':') return add('[');
    const std::string_view name = text_.substr(start, close - 1 - start);
    const auto* const found = std::ranges::find(named_classes, name, &NamedClass::name);
    if (found == named_classes.end()) return false;
    for (int byte = 0; byte < 128; ++byte) {
      if (found->has(byte) != 0) bytes_.set(static_cast<std::size_t>(byte));
    }
    at_ = close;
    before_ = '\0';
    return true;
  }

  std::string_view text_;
  std::size_t at_;
  char before_ = '\0';  // what a range could begin with
  ByteSet bytes_;
};

// Blanks at the end do not count, unless a backslash stands before one.
std::string_view without_blanks(std::string_view line) {
  std::size_t end = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == ' ') continue;
    if (line[at] == '\\' && ++at == line.size()) return line;
    end = at + 1;
  }
  return line.substr(0, end);
}

}  // namespace

std::optional<GitPattern> GitPattern::parse(std::string_view line) {
  if (line.starts_with('#') || line.size() > longest_line) return std::nullopt;
  line = without_blanks(line.substr(0, line.find('\0')));
  GitPattern pattern;
  pattern.negated_ = line.starts_with('!');
  if (pattern.negated_) line.remove_prefix(1);
  pattern.for_folders_ = line.ends_with('/');
  if (pattern.for_folders_) line.remove_suffix(1);
  pattern.for_names_ = line.find('/') == line.npos;
  if (line.starts_with('/')) line.remove_prefix(1);
  if (line.empty()) return std::nullopt;
  const std::size_t literal = literal_length(line);
  pattern.is_literal_ = literal == line.size();
  pattern.ends_with_ = pattern.for_names_ && line.starts_with('*') && literal_length(line.substr(1)) == line.size() - 1;
  pattern.literal_ = pattern.ends_with_ ? line.substr(1) : line.substr(0, literal);
  // git compares what is literal first, and takes what follows for the start of a name.
  if (!pattern.is_literal_ && !pattern.ends_with_) pattern.compile(line.substr(literal), true);
  return pattern;
}

void GitPattern::compile(std::string_view text, bool starts_name) {
  for (std::size_t at = 0; at < text.size() && !never_;) {
    const char byte = text[at];
    if (byte == '*') {
      add_stars(text, at, starts_name);
    } else if (byte == '[') {
      ClassReader reader(text, at + 1);
      const std::optional<Bytes> bytes = reader.read();
      never_ = !bytes;
      if (bytes) add_one(*bytes);
      at = reader.end();
    } else if (byte == '?') {
      add_one(Bytes().set());
      ++at;
    } else {
      if (byte == '\\') ++at;
      never_ = at == text.size();
      if (!never_) add_byte(text[at++]);
    }
    starts_name = at > 0 && at <= text.size() && text[at - 1] == '/';
  }
}

void GitPattern::add_stars(std::string_view text, std::size_t& at, bool starts_name) {
  const std::size_t start = at;
  at = std::min(text.find_first_not_of('*', at), text.size());
  const std::string_view rest = text.substr(at);
  const bool ends_name = rest.empty() || rest.starts_with('/') || rest.starts_with("\\/");
  const bool spans = at - start > 1 && starts_name && ends_name;
  if (spans && rest.starts_with('/')) tokens_.push_back({Token::Kind::folders});
  tokens_.push_back({spans ? Token::Kind::all : Token::Kind::run});
}

// Neither `?` nor a class is ever a slash.
void GitPattern::add_one(const Bytes& bytes) {
  tokens_.push_back({Token::Kind::one, sets_.size()});
  sets_.push_back(bytes);
  sets_.back().reset(index_of('/'));
}

void GitPattern::add_byte(char byte) {
  tokens_.push_back({Token::Kind::one, sets_.size()});
  sets_.emplace_back().set(index_of(byte));
}

bool GitPattern::matches(std::string_view path, bool is_folder) const {
  if (never_ || (for_folders_ && !is_folder)) return false;
  if (for_names_) path.remove_prefix(path.rfind('/') + 1);
  if (is_literal_) return path == literal_;
  if (ends_with_) return path.ends_with(literal_);
  return path.starts_with(literal_) && matches_rest(path.substr(literal_.size()));
}

// The state, and those that it leads to without a byte.
void GitPattern::reach(States& states, std::size_t state) const {
  for (; state < states.size() && states[state] == 0; ++state) {
    states[state] = 1;
    if (state == tokens_.size() || tokens_[state].kind == Token::Kind::one) return;
    if (tokens_[state].kind == Token::Kind::folders) reach(states, state + 3);
  }
}

// All ways at once: after each byte, `now` has the places in the pattern that it may have led to.
bool GitPattern::matches_rest(std::string_view text) const {
  States now(tokens_.size() + 1, 0);
  reach(now, 0);
  States next(now.size(), 0);
  for (const char byte : text) {
    std::ranges::fill(next, 0);
    bool any = false;
    for (std::size_t state = 0; state < tokens_.size(); ++state) {
      if (now[state] == 0) continue;
      const Token& token = tokens_[state];
      const bool is_one = token.kind == Token::Kind::one;
      const bool takes = is_one ? sets_[token.set][index_of(byte)]
                                : token.kind == Token::Kind::all || (token.kind == Token::Kind::run && byte != '/');
      if (!takes) continue;
      reach(next, is_one ? state + 1 : state);
      any = true;
    }
    if (!any) return false;
    now.swap(next);
  }
  return now.back() != 0;
}

GitIgnore::GitIgnore(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  std::size_t parts = 0;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    std::optional<GitPattern> pattern = GitPattern::parse(line);
    if (!pattern || parts + pattern->cost() > most_parts) continue;
    parts += pattern->cost();  // at least one, since each is looked at
    patterns_.push_back({number, std::move(*pattern)});
  }
}

std::optional<GitIgnore::Match> GitIgnore::match(std::string_view path, bool is_folder) const {
  for (auto at = patterns_.rbegin(); at != patterns_.rend(); ++at) {
    if (at->pattern.matches(path, is_folder)) return Match{at->line, !at->pattern.is_negated()};
  }
  return std::nullopt;
}

}  // namespace duet::pattern
