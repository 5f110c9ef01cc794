#pragma once

#include <cassert>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <boost/json/value.hpp>
#include <boost/json/value_ref.hpp>

#include "duet/api.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/json_write.h"

namespace duet::rpc {

/// JSON text that is known to be valid: what goes on the wire is made of it.
///
/// It is made from values (`5`, `"text"`, `{{"pong", true}}`, described structs, trees), or from text: parse() checks
/// it, trusted() and view() are for text that the caller has spelt itself. A string makes a JSON string. Json() is no
/// JSON at all, which stands for what is absent. A copy always has a text of its own, so what was passed as a view may
/// be kept by copying it.
class DUET_API Json {
 public:
  Json() = default;
  template <typename Value>
  requires(!JsonType<Value> && Writable<Value>) Json(const Value& value)  // NOLINT(google-explicit-constructor): meant
      : owns_(true) {
    if constexpr (StructType<Value>) owned_.reserve(usual_size);
    append_json(owned_, value);
    text_ = owned_;
  }
  Json(std::initializer_list<boost::json::value_ref> values) : Json(boost::json::value(values)) {}
  Json(const Json& other) : Json(std::string(other.text_), true) {}
  // A view is moved often, so that its empty string is left alone.
  Json(Json&& other) noexcept : text_(other.text_), owns_(other.owns_) {
    if (owns_) text_ = owned_ = std::move(other.owned_);
    other.text_ = {};
  }
  Json& operator=(const Json& other) { return *this = Json(other); }
  Json& operator=(Json&& other) noexcept {
    owned_ = std::move(other.owned_);
    text_ = other.owns_ ? std::string_view(owned_) : other.text_;
    owns_ = other.owns_;
    other.text_ = {};
    return *this;
  }
  ~Json() = default;

  /// Throws std::invalid_argument if it is not JSON. Blanks around it go.
  static Json parse(std::string text);
  /// Valid JSON text, or none; only builds with assertions check it. Blanks around it go.
  static Json trusted(std::string text) {
    assert(text.empty() || is_valid_json(text));
    const std::string_view inside = without_blanks(text);
    if (inside.size() != text.size()) return Json(std::string(inside), true);
    return Json(std::move(text), true);
  }
  /// The same for a text that outlives this object. A handler's params do not outlive what it returns: copy a view of
  /// them.
  static Json view(std::string_view text) {
    assert(text.empty() || is_valid_json(text));
    return Json(without_blanks(text), false);
  }

  std::string_view text() const { return text_; }
  bool empty() const { return text_.empty(); }
  /// The same with a text of its own, to be kept longer than what this may be a view of.
  Json owned() && { return owns_ ? std::move(*this) : Json(*this); }
  /// As a tree; null if it is empty. Throws std::length_error if it is nested deeper than max_depth.
  boost::json::value value() const { return empty() ? boost::json::value() : parse_value(text_); }
  /// As a C++ value. Throws std::invalid_argument if it does not fit, std::length_error if it is nested deeper than
  /// max_depth. Defined in duet/rpc/json_read.h.
  template <typename Value>
  Value as() const;

 private:
  // No other control character can stand at an end of valid JSON text.
  static bool is_blank(char c) { return static_cast<unsigned char>(c) <= ' '; }
  static std::string_view without_blanks(std::string_view text) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
  }

  Json(std::string text, bool owns) : owned_(std::move(text)), text_(owned_), owns_(owns) {}
  Json(std::string_view text, bool owns) : text_(text), owns_(owns) {}

  static constexpr std::size_t usual_size = 128;

  std::string owned_;
  std::string_view text_;
  bool owns_ = false;
};

/// JSON text that promises the shape of a type: for results that are spelt by hand, because that is faster, and
/// described all the same.
template <typename ShapeType>
class JsonOf : public Json {
 public:
  using Shape = ShapeType;

  explicit JsonOf(Json json) : Json(std::move(json)) {}
  static JsonOf trusted(std::string text) { return JsonOf(Json::trusted(std::move(text))); }
  static JsonOf view(std::string_view text) { return JsonOf(Json::view(text)); }
};

}  // namespace duet::rpc
