#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <boost/describe/enumerators.hpp>
#include <boost/describe/members.hpp>
#include <boost/json/value.hpp>
#include <boost/mp11/algorithm.hpp>

#include "duet/api.h"

namespace duet::rpc {

class Json;
template <typename Shape>
class JsonOf;

/// What JSON calls a value, as it stands in descriptions and in errors.
enum class Type : std::uint8_t { text, integer, number, boolean, object, array, null, any };

DUET_API std::string_view name_of(Type type);    ///< `string`, `integer`, …
DUET_API std::string_view plural_of(Type type);  ///< `strings`, `integers`, …

/// An enumerator and its word on the wire.
template <typename Enum>
struct EnumWord {
  Enum value;
  std::string_view word;
};

/// The words of an enum, in `list`. An enum that BOOST_DESCRIBE_ENUM describes has the names of its enumerators. For
/// other words (`utf-8`), or for an enum that nobody describes, specialise this.
template <typename Enum>
struct EnumWords {};

template <typename Enum>
requires(boost::describe::has_describe_enumerators<Enum>::value) struct EnumWords<Enum> {
 private:
  template <template <typename...> class List, typename... Each>
  static constexpr std::array<EnumWord<Enum>, sizeof...(Each)> words(List<Each...>) {
    return {{{Each::value, Each::name}...}};
  }

 public:
  static constexpr auto list = words(boost::describe::describe_enumerators<Enum>());
};

// Which C++ types are which JSON types. Each concept leaves out what an earlier one has.

template <typename T>
concept NullType = std::same_as<T, std::nullptr_t> || std::is_void_v<T>;

template <typename T>
concept TextType = !NullType<T> && std::convertible_to<const T&, std::string_view>;

template <typename T>
concept CharacterType = std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
    std::same_as<T, char16_t> || std::same_as<T, char32_t>;

template <typename T>
concept IntegerType = std::integral<T> && !std::same_as<T, bool> && !CharacterType<T>;

template <typename T>
concept NumberType = std::same_as<T, double> || std::same_as<T, float>;

template <typename T>
concept EnumType = std::is_enum_v<T> && requires {
  EnumWords<T>::list;
};

template <typename T>
concept TreeType =
    std::same_as<T, boost::json::value> || std::same_as<T, boost::json::object> || std::same_as<T, boost::json::array>;

template <typename T>
inline constexpr bool is_optional = false;
template <typename T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <typename T>
concept OptionalType = is_optional<T>;

template <typename T>
concept MapType = !TreeType<T> && requires {
  typename T::mapped_type;
  requires std::same_as<typename T::key_type, std::string>;
};

template <typename T>
concept ListType = !TreeType<T> && !TextType<T> && !MapType<T> && requires(T list, typename T::value_type value) {
  list.insert(list.end(), std::move(value));
  list.size();
};

/// A struct whose members BOOST_DESCRIBE_STRUCT has named. The names are those of the JSON object's members.
template <typename T>
concept StructType = std::is_class_v<T> && boost::describe::has_describe_members<T>::value;

/// Of a described struct, those of its bases first.
template <StructType T>
using MembersOf = boost::describe::describe_members<T, boost::describe::mod_public | boost::describe::mod_inherited>;

/// What such a member is called in JSON. The `_` at the end of a name is left out: a member can be called `default_`,
/// and no member `default`.
constexpr std::string_view json_name(std::string_view member) {
  if (member.ends_with('_')) member.remove_suffix(1);
  return member;
}

template <StructType T>
inline constexpr std::size_t member_count = boost::mp11::mp_size<MembersOf<T>>::value;

template <typename T>
concept JsonType = std::derived_from<T, Json>;

template <typename T>
inline constexpr bool is_json_of = false;
template <typename Shape>
inline constexpr bool is_json_of<JsonOf<Shape>> = true;

template <typename T>
constexpr Type type_of() {
  if constexpr (OptionalType<T>) {
    return type_of<typename T::value_type>();
  } else if constexpr (is_json_of<T>) {
    return type_of<typename T::Shape>();
  } else if constexpr (NullType<T>) {
    return Type::null;
  } else if constexpr (TextType<T> || EnumType<T>) {
    return Type::text;
  } else if constexpr (std::same_as<T, bool>) {
    return Type::boolean;
  } else if constexpr (IntegerType<T>) {
    return Type::integer;
  } else if constexpr (NumberType<T>) {
    return Type::number;
  } else if constexpr (ListType<T> || std::same_as<T, boost::json::array>) {
    return Type::array;
  } else if constexpr (StructType<T> || MapType<T> || std::same_as<T, boost::json::object>) {
    return Type::object;
  } else {
    return Type::any;
  }
}

}  // namespace duet::rpc
