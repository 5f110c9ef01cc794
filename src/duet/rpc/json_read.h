#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/value_to.hpp>
#include <boost/mp11/algorithm.hpp>

#include "duet/api.h"
#include "duet/rpc/initialisers.h"
#include "duet/rpc/json.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/types.h"
#include "duet/rpc/value.h"

namespace duet::rpc {

/// A type that read_json() can read. What a struct, a list or a map holds is checked when it is read.
template <typename T>
concept Readable =
    !is_json_of<T> && !NullType<T> &&
    (JsonType<T> || std::same_as<T, std::string> || std::same_as<T, bool> || IntegerType<T> || NumberType<T> ||
     EnumType<T> || OptionalType<T> || ListType<T> || MapType<T> || StructType<T> || TreeType<T> ||
     (!TextType<T> && !std::is_arithmetic_v<T> && !std::is_pointer_v<T> && boost::json::has_value_to<T>::value));

DUET_API bool equal_in_any_case(std::string_view a, std::string_view b);

/// Words are matched in any case.
template <EnumType Enum>
bool read_word(std::string_view text, Enum& out) {
  for (const auto& each : EnumWords<Enum>::list) {
    if (!equal_in_any_case(each.word, text)) continue;
    out = each.value;
    return true;
  }
  return false;
}

/// A whole number that fits; 5.0 is five.
template <IntegerType Integer, typename Whole>
bool read_whole(std::optional<Whole> whole, Integer& out) {
  if (!whole || !std::in_range<Integer>(*whole)) return false;
  out = static_cast<Integer>(*whole);
  return true;
}

template <typename T>
bool read_json(const boost::json::value& value, T& out);

template <ListType List>
bool read_list(const boost::json::value& value, List& out) {
  const boost::json::array* const array = value.if_array();
  if (array == nullptr) return false;
  List list;
  for (const boost::json::value& each : *array) {
    typename List::value_type element{};
    if (!read_json(each, element)) return false;
    list.insert(list.end(), std::move(element));
  }
  out = std::move(list);
  return true;
}

template <MapType Map>
bool read_map(const boost::json::value& value, Map& out) {
  const boost::json::object* const object = value.if_object();
  if (object == nullptr) return false;
  Map map;
  for (const auto& [name, each] : *object) {
    if (!read_json(each, map[std::string(name)])) return false;
  }
  out = std::move(map);
  return true;
}

template <StructType Struct>
bool read_struct(const boost::json::value& value, Struct& out) {
  static_assert(PlainStruct<Struct>, "A struct that is read has no constructors: give its members initialisers.");
  const boost::json::object* const object = value.if_object();
  bool fits = object != nullptr;
  std::size_t at = 0;
  boost::mp11::mp_for_each<MembersOf<Struct>>([&](auto member) {
    const bool may_be_absent = absent_members<Struct>()[at++];
    const boost::json::value* const found = fits ? object->if_contains(member.name) : nullptr;
    if (found == nullptr || (found->is_null() && may_be_absent)) {
      fits = fits && may_be_absent;
    } else {
      fits = read_json(*found, out.*member.pointer);
    }
  });
  return fits;
}

template <IntegerType Integer>
bool read_integer(const boost::json::value& value, Integer& out) {
  boost::json::error_code error;
  const auto whole = value.to_number<Integer>(error);
  if (!error.failed()) out = whole;
  return !error.failed();
}

/// Reads what is inside something else. False: it does not fit, and `out` is not to be used.
template <typename T>
bool read_json(const boost::json::value& value, T& out) {
  static_assert(Readable<T>, "This type cannot be read from JSON: describe it, or use std::string for a text.");
  if constexpr (JsonType<T>) {
    out = Json::trusted(to_text(value));
  } else if constexpr (OptionalType<T>) {
    if (!value.is_null()) return read_json(value, out.emplace());
    out.reset();
  } else if constexpr (ListType<T>) {
    return read_list(value, out);
  } else if constexpr (StructType<T>) {
    return read_struct(value, out);
  } else if constexpr (MapType<T>) {
    return read_map(value, out);
  } else if constexpr (EnumType<T>) {
    return value.is_string() && read_word(value.get_string(), out);
  } else if constexpr (IntegerType<T>) {
    return value.is_number() && read_integer(value, out);
  } else if constexpr (NumberType<T>) {
    out = value.is_number() ? value.to_number<T>() : T{};
    return value.is_number() && std::isfinite(out);
  } else {
    auto read = boost::json::try_value_to<T>(value);
    if (read.has_error()) return false;
    out = std::move(*read);
  }
  return true;
}

/// Reads JSON text that is known to be valid, as it stands in a request: texts and numbers without a tree. False: it
/// does not fit, and `out` is not to be used.
template <typename T>
bool read_json(std::string_view text, T& out) {
  static_assert(Readable<T>, "This type cannot be read from JSON: describe it, or use std::string for a text.");
  const std::string_view type = json_type(text);
  if constexpr (JsonType<T>) {
    out = Json::trusted(std::string(text));
  } else if constexpr (OptionalType<T>) {
    if (type != "null") return read_json(text, out.emplace());
    out.reset();
  } else if constexpr (std::same_as<T, std::string>) {
    if (type != "string") return false;
    out = decode_string(text);
  } else if constexpr (std::same_as<T, bool>) {
    out = text == "true";
    return type == "boolean";
  } else if constexpr (EnumType<T>) {
    return type == "string" && read_word(decode_string(text), out);
  } else if constexpr (IntegerType<T>) {
    if (type != "number") return false;
    if (read_whole(decode_integer(text), out)) return true;
    return std::same_as<T, std::uint64_t> && read_integer(parse_value(text), out);
  } else if constexpr (NumberType<T>) {
    out = type == "number" ? static_cast<T>(decode_number(text)) : T{};
    return type == "number" && std::isfinite(out);
  } else {
    return read_json(parse_value(text), out);
  }
  return true;
}

DUET_API std::string integer_range(std::int64_t least, std::uint64_t most);

/// What is expected where the JSON type fits and the content does not: `array of strings`.
template <typename T>
std::string expected_of() {
  constexpr Type type = type_of<T>();
  if constexpr (OptionalType<T>) {
    return expected_of<typename T::value_type>();
  } else if constexpr (ListType<T>) {
    return "array of " + std::string(plural_of(type_of<typename T::value_type>()));
  } else if constexpr (StructType<T>) {
    std::string members;
    std::size_t at = 0;
    boost::mp11::mp_for_each<MembersOf<T>>([&](auto member) {
      const bool may_be_absent = absent_members<T>()[at++];
      using Member = std::remove_cvref_t<decltype(std::declval<T&>().*member.pointer)>;
      members += (members.empty() ? "" : ", ") + std::string(member.name) + (may_be_absent ? "?: " : ": ");
      members += name_of(type_of<Member>());
    });
    return "object {" + members + "}";
  } else if constexpr (MapType<T>) {
    return "object of " + std::string(plural_of(type_of<typename T::mapped_type>()));
  } else if constexpr (IntegerType<T> && !std::same_as<T, std::int64_t>) {
    return integer_range(static_cast<std::int64_t>(std::numeric_limits<T>::min()), std::numeric_limits<T>::max());
  } else {
    return std::string(name_of(type));
  }
}

template <typename Value>
Value Json::as() const {
  Value value{};
  const std::string_view text = empty() ? "null" : text_;
  if (!read_json(text, value)) {
    throw std::invalid_argument("expected " + expected_of<Value>() + ", received " + std::string(json_type(text)));
  }
  return value;
}

}  // namespace duet::rpc
