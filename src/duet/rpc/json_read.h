#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <boost/json/value_to.hpp>
#include <boost/mp11/algorithm.hpp>

#include "duet/api.h"
#include "duet/rpc/initialisers.h"
#include "duet/rpc/json.h"
#include "duet/rpc/json_scan.h"
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
template <IntegerType Integer>
bool read_integer(std::string_view text, Integer& out) {
  using Widest = std::conditional_t<std::is_signed_v<Integer>, std::int64_t, std::uint64_t>;
  const std::optional<Widest> whole = decode_whole<Widest>(text);
  if (!whole || !std::in_range<Integer>(*whole)) return false;
  out = static_cast<Integer>(*whole);
  return true;
}

template <typename T>
bool read_json(std::string_view text, T& out);

template <ListType List>
bool read_list(std::string_view array, List& out) {
  List list;
  bool fits = true;
  for_each_element(array, [&](std::string_view each) {
    typename List::value_type element{};
    fits = read_json(each, element);
    if (fits) list.insert(list.end(), std::move(element));
    return fits;
  });
  out = std::move(list);
  return fits;
}

/// Of a doubled name the last one counts.
template <MapType Map>
bool read_map(std::string_view object, Map& out) {
  Map map;
  bool fits = true;
  for_each_member(object, [&](std::string_view name, std::string_view each) {
    typename Map::mapped_type value{};
    fits = read_json(each, value);
    if (fits) map.insert_or_assign(std::string(name), std::move(value));
    return fits;
  });
  out = std::move(map);
  return fits;
}

/// Unknown names are ignored; of a doubled one the last counts.
template <StructType Struct>
bool read_struct(std::string_view object, Struct& out) {
  static_assert(PlainStruct<Struct>, "A struct that is read has no constructors: give its members initialisers.");
  std::array<std::string_view, member_count<Struct>> values;
  for_each_member(object, [&](std::string_view name, std::string_view value) {
    std::size_t at = 0;
    boost::mp11::mp_for_each<MembersOf<Struct>>([&](auto member) {
      if (name == json_name(member.name)) values[at] = value;
      ++at;
    });
    return true;
  });
  bool fits = true;
  std::size_t at = 0;
  boost::mp11::mp_for_each<MembersOf<Struct>>([&](auto member) {
    const std::string_view value = values[at];
    const bool may_be_absent = absent_members<Struct>()[at++];
    if (value.empty() || (value == "null" && may_be_absent)) {
      fits = fits && may_be_absent;
    } else {
      fits = fits && read_json(value, out.*member.pointer);
    }
  });
  return fits;
}

/// Numbers beyond all doubles do not fit.
template <typename T>
bool read_tree(std::string_view text, T& out) {
  const boost::json::value tree = parse_value(text);
  if constexpr (!TreeType<T>) {
    if (!has_finite_numbers(tree)) return false;
  }
  auto read = boost::json::try_value_to<T>(tree);
  if (read.has_error()) return false;
  out = std::move(*read);
  return true;
}

/// Reads JSON text that is known to be valid and no deeper than a message may be, as it stands in a request. A tree is
/// built only for types that Boost.JSON has to convert. False: it does not fit, and `out` is not to be used.
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
    return type == "number" && read_integer(text, out);
  } else if constexpr (NumberType<T>) {
    out = type == "number" ? static_cast<T>(decode_number(text)) : T{};
    return type == "number" && std::isfinite(out);
  } else if constexpr (ListType<T>) {
    return type == "array" && read_list(text, out);
  } else if constexpr (StructType<T>) {
    return type == "object" && read_struct(text, out);
  } else if constexpr (MapType<T>) {
    return type == "object" && read_map(text, out);
  } else {
    return read_tree(text, out);
  }
  return true;
}

inline bool is_group(std::string_view text) { return text.front() == '{' || text.front() == '['; }

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
      members += (members.empty() ? "" : ", ") + std::string(json_name(member.name)) + (may_be_absent ? "?: " : ": ");
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

// A struct that contains itself is read by recursion, so that the depth of its text has to be known before.
template <typename Value>
Value Json::as() const {
  Value value{};
  const std::string_view text = empty() ? "null" : text_;
  if constexpr (!JsonType<Value>) {
    if (is_group(text) && scan_envelope(text).too_deep) throw std::length_error("JSON nested too deeply");
  }
  if (!read_json(text, value)) {
    throw std::invalid_argument("expected " + expected_of<Value>() + ", received " + std::string(json_type(text)));
  }
  return value;
}

}  // namespace duet::rpc
