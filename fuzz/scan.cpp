// The scanner against Boost.JSON and simdjson: the same verdict on every text. Where they refuse what RFC 8259 allows,
// the text is first changed in a way that keeps its validity (see Plain); nothing else is excused but depth.

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/json/parse.hpp>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"
#include "require.h"

namespace {

using duet::rpc::Envelope;
namespace json = boost::json;

constexpr std::size_t boost_depth = 500;  // Boost.JSON parses by recursion
constexpr std::size_t simdjson_depth = 100'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The same text with all numbers made small and no halves of surrogate pairs: both libraries refuse numbers that
// fit none of their types, and escapes that are half a pair.
class Plain {
 public:
  explicit Plain(std::string_view text) : text_(text) {}

  std::string text() {
    while (at_ < text_.size()) {
      if (in_string_) {
        in_string();
      } else {
        outside();
      }
    }
    return std::move(out_);
  }

 private:
  void in_string() {
    if (text_[at_] == '\\') return escape();
    in_string_ = text_[at_] != '"';
    out_ += text_[at_++];
  }

  void escape() {
    const std::string_view digits = text_.substr(at_).substr(0, 6);
    const bool surrogate = digits.size() == 6 && digits[1] == 'u' && (digits[2] == 'd' || digits[2] == 'D') &&
                           duet::rpc::hex_digit(digits[3]) >= 8 && duet::rpc::hex_digit(digits[4]) >= 0 &&
                           duet::rpc::hex_digit(digits[5]) >= 0;
    out_ += surrogate ? "\\u0041" : text_.substr(at_, 2);
    at_ += surrogate ? 6 : 2;
  }

  // Of a run of digits the first fifteen are kept; of an exponent the fact that there is one.
  void outside() {
    const char c = text_[at_];
    if (!is_digit(c)) {
      in_string_ = c == '"';
      out_ += c;
      ++at_;
      return;
    }
    const bool exponent = follows_exponent_mark();
    std::size_t size = 0;
    while (at_ + size < text_.size() && is_digit(text_[at_ + size])) ++size;
    out_ += exponent ? "1" : text_.substr(at_, std::min<std::size_t>(size, 15));
    at_ += size;
  }

  bool follows_exponent_mark() const {
    std::size_t before = at_;
    if (before > 0 && (text_[before - 1] == '+' || text_[before - 1] == '-')) --before;
    return before > 0 && (text_[before - 1] == 'e' || text_[before - 1] == 'E');
  }

  std::string_view text_;
  std::string out_;
  std::size_t at_ = 0;
  bool in_string_ = false;
};

// Boost.JSON 1.81 does not always give the nearest double.
bool same_number(double ours, double theirs) { return std::fabs(ours - theirs) <= std::fabs(theirs) * 1e-12; }

bool same_tree(const json::value& ours, const json::value& theirs) {
  if (theirs.is_number()) return ours.is_number() && same_number(ours.to_number<double>(), theirs.to_number<double>());
  if (ours.kind() != theirs.kind()) return false;
  if (theirs.is_array()) {
    const json::array& a = ours.get_array();
    const json::array& b = theirs.get_array();
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_tree);
  }
  if (theirs.is_object()) {
    const json::object& b = theirs.get_object();
    return ours.get_object().size() == b.size() && std::all_of(b.begin(), b.end(), [&](const auto& member) {
             const json::value* found = ours.get_object().if_contains(member.key());
             return found != nullptr && same_tree(*found, member.value());
           });
  }
  return ours == theirs;
}

void compare_with_boost(const std::string& text, bool valid) {
  json::parse_options options;
  options.max_depth = boost_depth;
  json::error_code error;
  const json::value theirs = json::parse(text, error, {}, options);
  if (error == json::error::too_deep) return;
  require(valid == !error, "Boost.JSON agrees");
  if (!valid) return;
  const json::value ours = duet::rpc::parse_value(text);
  require(same_tree(ours, theirs), "the tree is Boost.JSON's");
  require(duet::rpc::is_valid_json(duet::rpc::to_text(ours)), "a tree is written as valid JSON");
}

void compare_with_simdjson(const std::string& text, bool valid) {
  static simdjson::dom::parser parser;
  static const bool ready = parser.allocate(1 << 20, simdjson_depth) == simdjson::SUCCESS;
  require(ready, "simdjson has memory");
  const auto error = parser.parse(simdjson::padded_string(text)).error();
  if (error == simdjson::DEPTH_ERROR || error == simdjson::CAPACITY) return;
  require(valid == (error == simdjson::SUCCESS), "simdjson agrees");
}

void check_slices(std::string_view text, const Envelope& envelope) {
  for (unsigned member = 0; member < Envelope::member_count; ++member) {
    if (!envelope.has(static_cast<Envelope::Member>(member))) continue;
    const std::string_view slice = envelope.text(static_cast<Envelope::Member>(member));
    require(slice.data() >= text.data() && slice.data() + slice.size() <= text.data() + text.size(),
            "a slice is part of the text");
    require(duet::rpc::is_valid_json(slice), "a slice is valid JSON");
    require(slice.find_first_of(" \t\r\n") != 0 && slice.find_last_of(" \t\r\n") != slice.size() - 1,
            "a slice has no blanks around");
  }
}

// Every part is valid, and together with what joins them they are the whole.
void check_parts(std::string_view text, Envelope::Shape shape) {
  std::string joined;
  const auto part = [&](std::string_view name, std::string_view value) {
    require(duet::rpc::is_valid_json(value), "a part is valid JSON");
    if (!joined.empty()) joined += ',';
    joined.append(name).append(value);
    return true;
  };
  if (shape == Envelope::Shape::array) {
    duet::rpc::for_each_element(text, [&](std::string_view value) { return part("", value); });
    joined = "[" + joined + "]";
  } else {
    // A name is decoded, so that only one without escapes stands there as it is told.
    duet::rpc::for_each_member(text, [&](std::string_view name, std::string_view value) {
      const std::string raw = '"' + std::string(name) + '"';
      return part(text.find('\\') == std::string_view::npos ? raw + ':' : ":", value);
    });
    joined = "{" + joined + "}";
  }
  std::size_t at = 0;
  for (const char c : joined) {
    while (at < text.size() && text[at] != c) ++at;
    require(at < text.size(), "the parts are the whole");
    ++at;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const bool valid = duet::rpc::is_valid_json(text);
  const Envelope envelope = duet::rpc::scan_envelope(text);
  require(valid == (envelope.shape != Envelope::Shape::invalid), "both scans agree");

  const std::string plain = Plain(text).text();
  require(valid == duet::rpc::is_valid_json(plain), "large numbers and half pairs are valid");
  compare_with_boost(plain, valid);
  compare_with_simdjson(plain, valid);
  if (!valid) return 0;

  check_slices(text, envelope);
  if (envelope.shape == Envelope::Shape::array || envelope.shape == Envelope::Shape::object)
    check_parts(text, envelope.shape);
  if (!envelope.too_deep)
    require(duet::rpc::is_valid_json(duet::rpc::to_text(duet::rpc::parse_value(text))), "any text has a tree");
  return 0;
}
