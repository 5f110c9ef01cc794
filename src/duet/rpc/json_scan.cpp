#include "duet/rpc/json_scan.h"

#include <bit>
#include <cstdint>
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
    if (depth_ > deepest_) deepest_ = depth_;
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
  std::size_t deepest() const { return deepest_; }

 private:
  std::uint64_t inner_ = 0;
  std::size_t depth_ = 0;
  std::size_t deepest_ = 0;
  std::vector<std::uint64_t> outer_;
};

// A name between its quotes, as it is spelt.
struct Name {
  std::string_view inside;
  bool escaped = false;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_no_id(char first) { return first == '{' || first == '[' || first == 't' || first == 'f'; }

// Compared with a constant length, which the compiler turns into a few instructions.
template <std::size_t size>
bool same(const char* text, const char (&word)[size]) {
  return std::memcmp(text, word, size - 1) == 0;
}

Envelope::Member member_of(std::string_view name) {
  const char* text = name.data();
  switch (name.size()) {
    case 2:
      return same(text, "id") ? Envelope::id : Envelope::member_count;
    case 5:
      return same(text, "error") ? Envelope::error : Envelope::member_count;
    case 6:
      return same(text, "method")   ? Envelope::method
             : same(text, "params") ? Envelope::params
             : same(text, "result") ? Envelope::result
                                    : Envelope::member_count;
    case 7:
      return same(text, "jsonrpc") ? Envelope::jsonrpc : Envelope::member_count;
    default:
      return Envelope::member_count;
  }
}

void note(Envelope& out, const Name& name, std::string_view value) {
  constexpr std::size_t longest_spelling = 7 * 6;  // "jsonrpc", every letter as \uXXXX
  Envelope::Member which = Envelope::member_count;
  if (!name.escaped) {
    which = member_of(name.inside);
  } else if (name.inside.size() <= longest_spelling) {
    which = member_of(decode_string_inside(name.inside));
  }
  if (which == Envelope::member_count) return;
  if (which == Envelope::id && is_no_id(value.front())) out.id_of_wrong_type = true;
  if (out.has(which)) {
    out.doubled = static_cast<std::uint8_t>(out.doubled | 1U << which);
  } else {
    out.set(which, value.data(), value.data() + value.size());
  }
}

// Each step takes the place where something must begin and returns the place behind it, or nullptr
// when it is not there. The place goes from hand to hand, not through a member, so that it stays in
// a register: that halves what a small message costs.
class Scanner {
 public:
  using At = const char*;

  explicit Scanner(std::string_view text) : begin_(text.data()), end_(begin_ + text.size()), stops_(begin_, end_) {}

  Envelope envelope() {
    Envelope out;
    const At first = space(begin_);
    if (first == end_) return out;
    const At behind = *first == '{' ? top_object(first, out) : value(first);
    if (behind == nullptr || space(behind) != end_) return out;
    out.shape = *first == '{'   ? Envelope::Shape::object
                : *first == '[' ? Envelope::Shape::array
                                : Envelope::Shape::scalar;
    out.too_deep = nesting_.deepest() > max_depth;
    return out;
  }

  bool whole_value() {
    const At behind = value(space(begin_));
    return behind != nullptr && space(behind) == end_;
  }

  // The parts of an array or object whose text is known to be valid.
  template <typename Visit>
  void parts(Visit visit) {
    At at = space(begin_);
    const bool is_object = *at == '{';
    at = space(at + 1);
    while (at != end_ && *at != ']' && *at != '}') {
      Name name;
      if (is_object) at = name_and_colon(at, name);
      const At behind = at == nullptr ? nullptr : value(at);
      if (behind == nullptr || !visit(name.inside, slice(at, behind))) return;
      at = space(behind);
      if (at != end_ && *at == ',') at = space(at + 1);
    }
  }

 private:
  static std::string_view slice(At from, At to) { return {from, static_cast<std::size_t>(to - from)}; }

  bool is(At at, char c) const { return at != end_ && *at == c; }

  At space(At at) const {
    if (at != end_ && *at > ' ') return at;  // the usual case
    while (at != end_ && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) ++at;
    return at;
  }

  template <std::size_t size>
  At word(At at, const char (&text)[size]) const {
    return end_ - at >= static_cast<std::ptrdiff_t>(size - 1) && same(at, text) ? at + size - 1 : nullptr;
  }

  // Eight bytes at once while there are as many: the first that is no digit ends it.
  At digits(At at) const {
    const At begin = at;
    if constexpr (std::endian::native == std::endian::little) {
      for (; end_ - at >= 8; at += 8) {
        const std::uint64_t others = no_digits(at);
        if (others == 0) continue;
        at += std::countr_zero(others) / 8;
        return at == begin ? nullptr : at;
      }
    }
    while (at != end_ && is_digit(*at)) ++at;
    return at == begin ? nullptr : at;
  }

  // Bits are set in the lowest byte that is no digit; what they are above it does not matter.
  static std::uint64_t no_digits(At at) {
    constexpr std::uint64_t high = 0xF0F0F0F0F0F0F0F0;
    constexpr std::uint64_t digit = 0x3030303030303030;
    std::uint64_t eight = 0;
    std::memcpy(&eight, at, sizeof eight);
    return ((eight & high) ^ digit) | (((eight + 0x0606060606060606) & high) ^ digit);
  }

  At number(At at) const {
    if (is(at, '-')) ++at;
    at = is(at, '0') ? at + 1 : digits(at);
    if (at == nullptr || at == end_) return at;
    if (*at == '.') at = digits(at + 1);
    if (at == nullptr || at == end_ || (*at != 'e' && *at != 'E')) return at;
    ++at;
    if (is(at, '+') || is(at, '-')) ++at;
    return digits(at);
  }

  At escape(At at) const {
    if (at == end_) return nullptr;
    const char c = *at++;
    if (c != 'u') return c != '\0' && std::strchr("\"\\/bfnrt", c) != nullptr ? at : nullptr;
    if (end_ - at < 4) return nullptr;
    for (int i = 0; i < 4; ++i) {
      if (hex_digit(*at++) < 0) return nullptr;
    }
    return at;
  }

  // `at` is at the opening quote. Nothing in the usual string needs a closer look.
  [[gnu::always_inline]] At string(At at, bool& escaped) {
    const At stop = stops_.next(at + 1);
    if (is(stop, '"')) return stop + 1;
    return rest_of_string(stop, escaped);
  }

  [[gnu::noinline]] At rest_of_string(At at, bool& escaped) {
    while (at != end_ && *at != '"') {
      if (*at == '\\') {
        escaped = true;
        at = escape(at + 1);
        if (at == nullptr) return nullptr;
      } else {
        const std::size_t length = static_cast<unsigned char>(*at) < 0x20 ? 0 : utf8_length(at, end_);
        if (length == 0) return nullptr;
        at += length;
      }
      at = stops_.next(at);
    }
    return at == end_ ? nullptr : at + 1;
  }

  // A name, its colon and the space behind: where the member's value begins.
  [[gnu::always_inline]] At name_and_colon(At at, Name& name) {
    if (!is(at, '"')) return nullptr;
    const At behind = string(at, name.escaped);
    if (behind == nullptr) return nullptr;
    name.inside = slice(at + 1, behind - 1);
    at = space(behind);
    return is(at, ':') ? space(at + 1) : nullptr;
  }

  [[gnu::always_inline]] At scalar(At at) {
    bool ignored = false;
    switch (*at) {
      case '"':
        return string(at, ignored);
      case 't':
        return word(at, "true");
      case 'f':
        return word(at, "false");
      case 'n':
        return word(at, "null");
      default:
        return number(at);
    }
  }

  [[gnu::always_inline]] At value(At at) {
    if (at == end_) return nullptr;
    return *at == '{' || *at == '[' ? group(at) : scalar(at);
  }

  // An array or object of any depth, without recursion.
  [[gnu::noinline]] At group(At at) {
    const std::size_t base = nesting_.depth();
    for (;;) {
      if (at == end_) return nullptr;
      if (*at == '{' || *at == '[') {
        nesting_.open(*at == '{');
        at = space(at + 1);
        if (!is(at, closing_bracket())) {
          at = next_value(at);
          if (at == nullptr) return nullptr;
          continue;
        }
      } else {
        at = scalar(at);
        if (at == nullptr) return nullptr;
      }
      at = step_out(at, base);
      if (at == nullptr || nesting_.depth() == base) return at;
    }
  }

  char closing_bracket() const { return nesting_.in_object() ? '}' : ']'; }

  // Inside a group, where a member or an element must begin: the place of its value.
  At next_value(At at) {
    Name ignored;
    return nesting_.in_object() ? name_and_colon(at, ignored) : at;
  }

  // Behind a value: past closing brackets down to `base`, or past a comma to the next value.
  At step_out(At at, std::size_t base) {
    while (nesting_.depth() != base) {
      at = space(at);
      if (is(at, ',')) return next_value(space(at + 1));
      if (!is(at, closing_bracket())) return nullptr;
      nesting_.close();
      ++at;
    }
    return at;
  }

  // The three members nearly everybody sends, spelt as nearly everybody spells them: a comparison
  // each instead of a walk. nullptr: it is something else, or not valid, and the general way tells.
  [[gnu::always_inline]] At usual_member(At at, Envelope& out) {
    constexpr std::ptrdiff_t longest = 16;
    if (end_ - at < longest) return nullptr;
    Envelope::Member which = Envelope::member_count;
    At begin = nullptr;
    At behind = nullptr;
    if (same(at, R"("id":)") && is_digit(at[5])) {
      which = Envelope::id;
      begin = at + 5;
      behind = number(begin);
    } else if (same(at, R"("method":")")) {
      bool escaped = false;
      which = Envelope::method;
      begin = at + 9;
      behind = string(begin, escaped);
      out.method_is_plain = !escaped;
    } else if (same(at, R"("jsonrpc":"2.0")")) {
      which = Envelope::jsonrpc;
      begin = at + 10;
      behind = at + 15;
    }
    if (behind == nullptr || out.has(which)) return nullptr;
    out.set(which, begin, behind);
    return behind;
  }

  At any_member(At at, Envelope& out) {
    Name name;
    at = name_and_colon(at, name);
    if (at == nullptr) return nullptr;
    const At behind = value(at);
    if (behind != nullptr) note(out, name, slice(at, behind));
    return behind;
  }

  At top_object(At at, Envelope& out) {
    nesting_.open(true);
    at = space(at + 1);
    if (is(at, '}')) return at + 1;
    for (;;) {
      At behind = usual_member(at, out);
      if (behind == nullptr) behind = any_member(at, out);
      if (behind == nullptr) return nullptr;
      at = space(behind);
      if (is(at, '}')) return at + 1;
      if (!is(at, ',')) return nullptr;
      at = space(at + 1);
    }
  }

  At begin_;
  At end_;
  StringStops stops_;
  Nesting nesting_;
};

}  // namespace

Envelope scan_envelope(std::string_view text) { return Scanner(text).envelope(); }

bool is_valid_json(std::string_view text) { return Scanner(text).whole_value(); }

void for_each_element(std::string_view array, const std::function<bool(std::string_view)>& visit) {
  Scanner(array).parts([&](std::string_view, std::string_view value) { return visit(value); });
}

void for_each_member(std::string_view object, const std::function<bool(std::string_view, std::string_view)>& visit) {
  Scanner(object).parts([&](std::string_view raw_name, std::string_view value) {
    if (raw_name.find('\\') == std::string_view::npos) return visit(raw_name, value);
    return visit(decode_string_inside(raw_name), value);
  });
}

}  // namespace duet::rpc
