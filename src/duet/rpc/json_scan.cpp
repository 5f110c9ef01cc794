#include "duet/rpc/json_scan.h"

#include <cstring>
#include <vector>

#include "duet/rpc/json_text.h"
#include "duet/rpc/string_stop.h"
#include "duet/rpc/utf8.h"

namespace duet::rpc {
namespace {

// Which kinds of brackets are open: one bit a level, the innermost 64 in a register.
class Nesting {
 public:
  void open(bool is_object) {
    if (depth_ != 0 && depth_ % 64 == 0) outer_.push_back(inner_);
    inner_ = inner_ << 1U | static_cast<std::uint64_t>(is_object);
    ++depth_;
  }
  void close() {
    --depth_;
    inner_ >>= 1U;
    if (depth_ != 0 && depth_ % 64 == 0) {
      inner_ = outer_.back();
      outer_.pop_back();
    }
  }
  bool in_object() const { return (inner_ & 1U) != 0; }
  std::size_t depth() const { return depth_; }

 private:
  std::uint64_t inner_ = 0;
  std::size_t depth_ = 0;
  std::vector<std::uint64_t> outer_;
};

struct StringToken {
  std::string_view inside;  // between the quotes, as it is spelt
  bool escaped = false;
};

bool is_no_id(char first) { return first == '{' || first == '[' || first == 't' || first == 'f'; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Scanner {
 public:
  explicit Scanner(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  Envelope envelope() {
    Envelope out;
    space();
    if (at_ == end_) return out;
    const char first = *at_;
    const bool ok = first == '{' ? top_object(out) : value();
    space();
    if (!ok || at_ != end_) return out;
    out.shape = first == '{'   ? Envelope::Shape::object
                : first == '[' ? Envelope::Shape::array
                               : Envelope::Shape::scalar;
    out.too_deep = deepest_ > max_depth;
    return out;
  }

  bool whole_value() {
    space();
    if (!value()) return false;
    space();
    return at_ == end_;
  }

  // The parts of an array or object whose text is known to be valid.
  template <typename Visit>
  void parts(Visit visit) {
    space();
    const bool is_object = *at_++ == '{';
    space();
    while (at_ != end_ && *at_ != ']' && *at_ != '}') {
      StringToken name;
      if (is_object && !name_and_colon(name)) return;
      std::string_view text;
      if (!sliced_value(text) || !visit(name.inside, text)) return;
      space();
      take(',');
      space();
    }
  }

 private:
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  void space() {
    if (at_ != end_ && *at_ > ' ') return;  // the usual case
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  bool word(std::string_view text) {
    if (static_cast<std::size_t>(end_ - at_) < text.size() || std::memcmp(at_, text.data(), text.size()) != 0) {
      return false;
    }
    at_ += text.size();
    return true;
  }

  bool digits() {
    const char* begin = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != begin;
  }

  bool number() {
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (!take('+')) take('-');
      return digits();
    }
    return true;
  }

  bool escape() {
    if (at_ == end_) return false;
    const char c = *at_++;
    if (c != 'u') return c != '\0' && std::strchr("\"\\/bfnrt", c) != nullptr;
    if (end_ - at_ < 4) return false;
    for (int i = 0; i < 4; ++i) {
      if (hex_digit(*at_++) < 0) return false;
    }
    return true;
  }

  bool string(StringToken& out) {
    if (!take('"')) return false;
    const char* begin = at_;
    for (;;) {
      at_ = find_string_stop(at_, end_);
      if (at_ == end_) return false;
      const char c = *at_;
      if (c == '"') break;
      if (c == '\\') {
        ++at_;
        out.escaped = true;
        if (!escape()) return false;
        continue;
      }
      const std::size_t length = static_cast<unsigned char>(c) < 0x20 ? 0 : utf8_length(at_, end_);
      if (length == 0) return false;
      at_ += length;
    }
    out.inside = {begin, static_cast<std::size_t>(at_ - begin)};
    ++at_;
    return true;
  }

  bool name_and_colon(StringToken& name) {
    if (!string(name)) return false;
    space();
    if (!take(':')) return false;
    space();
    return true;
  }

  bool scalar() {
    switch (*at_) {
      case '"': {
        StringToken ignored;
        return string(ignored);
      }
      case 't': return word("true");
      case 'f': return word("false");
      case 'n': return word("null");
      default: return number();
    }
  }

  bool value() {
    if (at_ == end_) return false;
    return *at_ == '{' || *at_ == '[' ? group() : scalar();
  }

  // An array or object of any depth, without recursion. Leaves at_ just behind it.
  bool group() {
    const std::size_t base = nesting_.depth();
    for (;;) {
      if (at_ == end_) return false;
      if (*at_ == '{' || *at_ == '[') {
        open_group();
        if (!group_is_empty()) {
          if (!name_if_in_object()) return false;
          continue;
        }
      } else if (!scalar()) {
        return false;
      }
      for (;;) {
        if (nesting_.depth() == base) return true;
        space();
        if (at_ == end_) return false;
        const char c = *at_++;
        if (c == ',') break;
        if (c != (nesting_.in_object() ? '}' : ']')) return false;
        nesting_.close();
      }
      space();
      if (!name_if_in_object()) return false;
    }
  }

  void open_group() {
    nesting_.open(*at_++ == '{');
    if (nesting_.depth() > deepest_) deepest_ = nesting_.depth();
    space();
  }

  bool name_if_in_object() {
    StringToken ignored;
    return !nesting_.in_object() || name_and_colon(ignored);
  }

  bool group_is_empty() {
    if (at_ == end_ || *at_ != (nesting_.in_object() ? '}' : ']')) return false;
    ++at_;
    nesting_.close();
    return true;
  }

  bool sliced_value(std::string_view& out) {
    const char* begin = at_;
    if (!value()) return false;
    out = {begin, static_cast<std::size_t>(at_ - begin)};
    return true;
  }

  bool top_object(Envelope& out) {
    ++at_;
    nesting_.open(true);
    deepest_ = 1;
    space();
    if (take('}')) return true;
    do {
      space();
      StringToken name;
      std::string_view text;
      if (!name_and_colon(name) || !sliced_value(text)) return false;
      note(out, name, text);
      space();
    } while (take(','));
    return take('}');
  }

  // Compared with constant lengths, which the compiler turns into a few instructions.
  template <std::size_t size>
  static bool same(const char* name, const char (&word)[size]) {
    return std::memcmp(name, word, size - 1) == 0;
  }

  static Envelope::Member member_of(std::string_view name) {
    const char* text = name.data();
    switch (name.size()) {
      case 2: return same(text, "id") ? Envelope::id : Envelope::member_count;
      case 5: return same(text, "error") ? Envelope::error : Envelope::member_count;
      case 6:
        return same(text, "method")   ? Envelope::method
               : same(text, "params") ? Envelope::params
               : same(text, "result") ? Envelope::result
                                      : Envelope::member_count;
      case 7: return same(text, "jsonrpc") ? Envelope::jsonrpc : Envelope::member_count;
      default: return Envelope::member_count;
    }
  }

  static void note(Envelope& out, const StringToken& name, std::string_view text) {
    constexpr std::size_t longest_spelling = 7 * 6;  // "jsonrpc", every letter as \uXXXX
    Envelope::Member which = Envelope::member_count;
    if (!name.escaped) {
      which = member_of(name.inside);
    } else if (name.inside.size() <= longest_spelling) {
      which = member_of(decode_string_inside(name.inside));
    }
    if (which == Envelope::member_count) return;
    if (which == Envelope::id && is_no_id(text.front())) out.id_of_wrong_type = true;
    if (out.has(which)) {
      out.doubled = static_cast<std::uint8_t>(out.doubled | 1U << which);
    } else {
      out.members[which] = text;
    }
  }

  const char* at_;
  const char* end_;
  Nesting nesting_;
  std::size_t deepest_ = 0;
};

}  // namespace

Envelope scan_envelope(std::string_view text) { return Scanner(text).envelope(); }

bool is_valid_json(std::string_view text) { return Scanner(text).whole_value(); }

void for_each_element(std::string_view array, const std::function<bool(std::string_view)>& visit) {
  Scanner(array).parts([&](std::string_view, std::string_view value) { return visit(value); });
}

void for_each_member(std::string_view object,
                     const std::function<bool(std::string_view, std::string_view)>& visit) {
  Scanner(object).parts(visit);
}

}  // namespace duet::rpc
