#include "duet/rpc/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/string_stop.h"

namespace duet::rpc {
namespace {

template <typename Whole>
bool read_whole(std::string_view text, Whole& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

boost::json::value number_value(std::string_view text) {
  std::int64_t whole = 0;
  if (read_whole(text, whole)) return whole;
  std::uint64_t large = 0;
  if (read_whole(text, large)) return large;
  return decode_number(text);
}

// Boost.JSON's own parser refuses lone surrogates and large exponents, which are valid JSON; so the
// tree is built here, in one pass over text that needs no more checking.
class TreeBuilder {
 public:
  explicit TreeBuilder(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  boost::json::value value(std::size_t depth = 1) {
    space();
    if (depth > max_depth && (*at_ == '{' || *at_ == '[')) throw std::length_error("JSON nested too deeply");
    switch (*at_) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return boost::json::string(text());
      case 't':
        at_ += 4;
        return true;
      case 'f':
        at_ += 5;
        return false;
      case 'n':
        at_ += 4;
        return nullptr;
      default:
        return number();
    }
  }

 private:
  void space() {
    while (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t') ++at_;
  }

  bool closes(char bracket) {
    space();
    if (*at_ == ',') ++at_;
    space();
    if (*at_ != bracket) return false;
    ++at_;
    return true;
  }

  std::string text() {
    const char* begin = ++at_;
    for (at_ = find_string_stop(at_, end_); *at_ != '"'; at_ = find_string_stop(at_, end_)) {
      at_ += *at_ == '\\' ? 2 : 1;
    }
    return decode_string_inside({begin, static_cast<std::size_t>(at_++ - begin)});
  }

  boost::json::value number() {
    const char* begin = at_;
    while (at_ != end_ && std::strchr("+-.0123456789eE", *at_) != nullptr) ++at_;
    return number_value({begin, static_cast<std::size_t>(at_ - begin)});
  }

  boost::json::value object(std::size_t depth) {
    boost::json::object out;
    ++at_;
    while (!closes('}')) {
      const std::string name = text();
      space();
      ++at_;
      out[name] = value(depth + 1);
    }
    return out;
  }

  boost::json::value array(std::size_t depth) {
    boost::json::array out;
    ++at_;
    while (!closes(']')) out.push_back(value(depth + 1));
    return out;
  }

  const char* at_;
  const char* end_;
};

}  // namespace

boost::json::value parse_value(std::string_view text) { return TreeBuilder(text).value(); }

bool has_finite_numbers(const boost::json::value& tree) {
  if (const double* const number = tree.if_double()) return std::isfinite(*number);
  if (const boost::json::array* const array = tree.if_array()) return std::ranges::all_of(*array, has_finite_numbers);
  if (const boost::json::object* const object = tree.if_object()) {
    return std::ranges::all_of(*object, [](const auto& member) { return has_finite_numbers(member.value()); });
  }
  return true;
}

void append_value(std::string& out, const boost::json::value& value) {
  switch (value.kind()) {
    case boost::json::kind::null:
      out += "null";
      return;
    case boost::json::kind::bool_:
      out += value.get_bool() ? "true" : "false";
      return;
    case boost::json::kind::int64:
      append_number(out, value.get_int64());
      return;
    case boost::json::kind::uint64:
      append_number(out, value.get_uint64());
      return;
    case boost::json::kind::double_:
      append_number(out, value.get_double());
      return;
    case boost::json::kind::string:
      append_string(out, value.get_string());
      return;
    case boost::json::kind::array:
      append_value(out, value.get_array());
      return;
    case boost::json::kind::object:
      append_value(out, value.get_object());
      return;
  }
}

void append_value(std::string& out, const boost::json::array& array) {
  out += '[';
  bool first = true;
  for (const boost::json::value& element : array) {
    if (!first) out += ',';
    first = false;
    append_value(out, element);
  }
  out += ']';
}

void append_value(std::string& out, const boost::json::object& object) {
  out += '{';
  bool first = true;
  for (const auto& [name, member] : object) {
    if (!first) out += ',';
    first = false;
    append_string(out, name);
    out += ':';
    append_value(out, member);
  }
  out += '}';
}

std::string to_text(const boost::json::value& value) {
  std::string out;
  append_value(out, value);
  return out;
}

}  // namespace duet::rpc
