#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include <boost/json/value_from.hpp>
#include <boost/mp11/algorithm.hpp>

#include "duet/rpc/json_text.h"
#include "duet/rpc/types.h"
#include "duet/rpc/value.h"

namespace duet::rpc {

/// A type that append_json() can write. What a struct, a list or a map holds is checked when it is written.
template <typename T>
concept Writable = JsonType<T> || NullType<T> || TextType<T> || std::same_as<T, bool> || IntegerType<T> ||
    NumberType<T> || EnumType<T> || OptionalType<T> || ListType<T> || MapType<T> || StructType<T> || TreeType<T> ||
    (!std::is_arithmetic_v<T> && boost::json::has_value_from<T>::value);

/// Throws std::out_of_range for a value that is none of the enumerators.
template <EnumType Enum>
std::string_view word_of(Enum value) {
  for (const auto& each : EnumWords<Enum>::list) {
    if (each.value == value) return each.word;
  }
  throw std::out_of_range("a value without a word");
}

template <typename T>
void append_json(std::string& out, const T& value);

/// `[…]` or `{…}`, a piece at a time.
class GroupWriter {
 public:
  GroupWriter(std::string& out, char opening) : out_(out) { out_ += opening; }
  std::string& next() {
    if (!is_first_) out_ += ',';
    is_first_ = false;
    return out_;
  }
  std::string& next(std::string_view name) {
    append_string(next(), name);
    return out_ += ':';
  }

 private:
  std::string& out_;
  bool is_first_ = true;
};

template <ListType List>
void append_list(std::string& out, const List& list) {
  GroupWriter group(out, '[');
  for (const typename List::value_type& each : list) append_json(group.next(), each);
  out += ']';
}

template <MapType Map>
void append_map(std::string& out, const Map& map) {
  GroupWriter group(out, '{');
  for (const auto& [name, each] : map) append_json(group.next(name), each);
  out += '}';
}

template <StructType Struct>
void append_struct(std::string& out, const Struct& value) {
  GroupWriter group(out, '{');
  boost::mp11::mp_for_each<MembersOf<Struct>>([&](auto member) {
    const auto& each = value.*member.pointer;
    if constexpr (OptionalType<std::remove_cvref_t<decltype(each)>>) {
      if (each) append_json(group.next(json_name(member.name)), *each);
    } else {
      append_json(group.next(json_name(member.name)), each);
    }
  });
  out += '}';
}

/// Appends a value as JSON text: numbers, texts, described structs and enums, lists, maps, trees, and whatever
/// Boost.JSON has a conversion for. A member of a struct that is an empty optional is left out. Always valid: see
/// append_string() and append_value().
template <typename T>
void append_json(std::string& out, const T& value) {
  static_assert(Writable<T>, "This type has no JSON: describe it with BOOST_DESCRIBE_STRUCT or BOOST_DESCRIBE_ENUM.");
  if constexpr (JsonType<T>) {
    out += value.empty() ? std::string_view("null") : value.text();
  } else if constexpr (NullType<T>) {
    out += "null";
  } else if constexpr (TextType<T>) {
    append_string(out, value);
  } else if constexpr (std::same_as<T, bool>) {
    out += value ? "true" : "false";
  } else if constexpr (std::signed_integral<T>) {
    append_number(out, std::int64_t{value});
  } else if constexpr (IntegerType<T>) {
    append_number(out, std::uint64_t{value});
  } else if constexpr (NumberType<T>) {
    append_number(out, double{value});
  } else if constexpr (EnumType<T>) {
    append_string(out, word_of(value));
  } else if constexpr (OptionalType<T>) {
    value ? append_json(out, *value) : append_json(out, nullptr);
  } else if constexpr (ListType<T>) {
    append_list(out, value);
  } else if constexpr (StructType<T>) {
    append_struct(out, value);
  } else if constexpr (MapType<T>) {
    append_map(out, value);
  } else if constexpr (TreeType<T>) {
    append_value(out, value);
  } else {
    append_value(out, boost::json::value_from(value));
  }
}

}  // namespace duet::rpc
