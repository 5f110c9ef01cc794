#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "duet/rpc/json_text.h"

namespace duet::rpc {

/// A JSON object, written member by member. Names are written as they are: they must need no escapes, and differ.
class ObjectText {
 public:
  ObjectText() {
    text_.reserve(usual_size);
    text_ = '{';
  }
  /// Goes on with a JSON object that has been written, without spaces at its end.
  explicit ObjectText(std::string_view object) : text_(object.substr(0, object.size() - 1)) {}

  ObjectText& add(std::string_view name, std::string_view text) {
    begin(name);
    append_string(text_, text);
    return *this;
  }

  template <std::integral Number>
  requires(!std::same_as<Number, bool>) ObjectText& add(std::string_view name, Number number) {
    std::array<char, 24> digits{};
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    return add_json(name, {digits.data(), written.ptr});
  }

  /// `json` is valid JSON.
  ObjectText& add_json(std::string_view name, std::string_view json) {
    begin(name);
    text_ += json;
    return *this;
  }

  std::string take() {
    text_ += '}';
    return std::move(text_);
  }

 private:
  static constexpr std::size_t usual_size = 192;  // the event of a new task fits

  // One call for all of it: every event has half a dozen members.
  void begin(std::string_view name) {
    const std::size_t at = text_.size();
    const std::size_t comma = at > 1 ? 1 : 0;
    text_.append(comma + name.size() + 3, '"');
    char* const to = text_.data() + at;
    if (comma > 0) *to = ',';
    name.copy(to + comma + 1, name.size());
    to[comma + 1 + name.size() + 1] = ':';
  }

  std::string text_;
};

}  // namespace duet::rpc
