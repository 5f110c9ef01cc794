#include "pattern/glob.h"

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include <re2/re2.h>

#include "duet/rpc/utf8.h"

namespace duet::pattern {
namespace {

class GlobFault : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// Writes a glob as a regular expression.
class GlobReader {
 public:
  explicit GlobReader(std::string_view text) : text_(text) {}

  std::string read() {
    while (!at_end()) element();
    if (open_braces_ > 0) throw GlobFault("a { in a glob has no }");
    return std::move(out_);
  }

 private:
  bool at_end() const { return at_ == text_.size(); }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool ends_choice() const { return at_end() || (open_braces_ > 0 && (peek() == ',' || peek() == '}')); }

  void element() {
    if (ends_choice()) return brace_or_comma();
    switch (peek()) {
      case '*':
        return stars();
      case '?':
        ++at_;
        out_ += "[^/]";
        return;
      case '[':
        return brackets();
      case '{':
        return brace_or_comma();
      default:
        character();
        if (text_[at_ - 1] == '/') name_start_ = at_;
    }
  }

  void stars() {
    const std::size_t start = at_;
    at_ = std::min(text_.find_first_not_of('*', at_), text_.size());
    const bool whole_name = start == name_start_ && at_ == start + 2;
    if (whole_name && ends_choice()) {
      out_ += "(?s:.)+";
    } else if (whole_name && peek() == '/') {
      name_start_ = ++at_;
      out_ += "(?:[^/]+/)*";
    } else {
      out_ += "[^/]*";
    }
  }

  void brace_or_comma() {
    const char which = text_[at_++];
    out_ += which == '{' ? "(?:" : which == ',' ? "|" : ")";
    if (which == '{') ++open_braces_;
    if (which == '}') --open_braces_;
    if (which != '}') name_start_ = at_;
  }

  void brackets() {
    ++at_;
    const bool negated = peek() == '!' || peek() == '^';
    if (negated) ++at_;
    out_ += negated ? "[^/" : "[";
    do {
      bracketed();
      if (peek() != '-' || peek(1) == ']') continue;
      ++at_;
      out_ += '-';
      bracketed();
    } while (peek() != ']');
    ++at_;
    out_ += ']';
  }

  void bracketed() {
    if (at_end()) throw GlobFault("a [ in a glob has no ]");
    character();
  }

  void character() {
    if (peek() == '\\' && ++at_ == text_.size()) throw GlobFault("a glob cannot end with a backslash");
    const std::size_t length = rpc::utf8_length(text_.data() + at_, text_.data() + text_.size());
    const std::string_view taken = text_.substr(at_, std::max<std::size_t>(length, 1));
    out_ += RE2::QuoteMeta(taken);
    at_ += taken.size();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t name_start_ = 0;  // where a name begins, if that is here
  int open_braces_ = 0;
  std::string out_;
};

}  // namespace

std::variant<Glob, std::string> parse_glob(std::string_view text) {
  try {
    auto parsed = parse_regex(GlobReader(text).read());
    if (auto* fault = std::get_if<std::string>(&parsed)) return std::move(*fault);
    return Glob(std::get<Regex>(std::move(parsed)));
  } catch (const GlobFault& fault) {
    return fault.what();
  }
}

}  // namespace duet::pattern
