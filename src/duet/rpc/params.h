#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/mp11/algorithm.hpp>

#include "duet/api.h"
#include "duet/rpc/error.h"
#include "duet/rpc/json_read.h"
#include "duet/rpc/schema.h"
#include "duet/rpc/types.h"

namespace duet::rpc {

/// One parameter of a method, as its C++ type makes it.
struct Param {
  std::string name;
  Type type = Type::any;
  bool required = true;
  std::string summary = {};
  std::vector<std::string> accepted = {};  ///< of an enum: its words, matched in any case
  std::string otherwise = {};              ///< of one with an initialiser: that value, as JSON
  boost::json::object (*schema)() = nullptr;
};

/// The raw texts of a request's params, beside a method's list: by name or by position, unknown ones ignored, the last
/// of a doubled name. Those that are absent are empty.
DUET_API void slice_params(std::span<const Param> list, std::string_view raw, std::span<std::string_view> slices);

/// A parameter that is not there, or that does not fit; `expected` is told if its JSON type fits.
DUET_API Error missing_param(const Param& param);
DUET_API Error wrong_param(const Param& param, std::string_view slice, std::string_view expected);

/// The description of a parameter of this type.
template <typename T>
Param describe_param(std::string name) {
  static_assert(Readable<T>,
                "This parameter cannot be read from JSON: describe its type, or use std::string for a text.");
  Param param;
  param.name = std::move(name);
  param.type = type_of<T>();
  param.required = !OptionalType<T>;
  param.schema = &schema_of<T, SchemaMaker::Of::read>;
  if constexpr (OptionalType<T> || ListType<T>) {
    if constexpr (Readable<typename T::value_type>) {
      param.accepted = describe_param<typename T::value_type>({}).accepted;
    }
  } else if constexpr (EnumType<T>) {
    for (const auto& each : EnumWords<T>::list) param.accepted.emplace_back(each.word);
  }
  return param;
}

/// The members of a struct as parameters. May one be absent? See may_be_absent().
template <StructType Struct>
std::vector<Param> describe_params() {
  static_assert(PlainStruct<Struct>, "A struct of params has no constructors: give its members initialisers.");
  std::vector<Param> list;
  const Struct usual{};
  boost::mp11::mp_for_each<MembersOf<Struct>>([&](auto member) {
    using Member = std::remove_cvref_t<decltype(usual.*member.pointer)>;
    Param param = describe_param<Member>(std::string(json_name(member.name)));
    param.required = !absent_members<Struct>()[list.size()];
    if constexpr (!OptionalType<Member>) {
      if (!param.required) append_json(param.otherwise, usual.*member.pointer);
    }
    list.push_back(std::move(param));
  });
  return list;
}

/// Null is the same as absent for a parameter that may be absent. Throws invalid_params().
template <typename T>
void read_param(const Param& param, std::string_view slice, T& out) {
  if (slice.empty() || (slice == "null" && !param.required)) {
    if (param.required) throw missing_param(param);
  } else if (!read_json(slice, out)) {
    throw wrong_param(param, slice, expected_of<T>());
  }
}

/// The params of a request as a struct that describe_params() has described. Throws invalid_params().
template <StructType Struct>
void read_params(std::span<const Param> list, std::string_view raw, Struct& out) {
  std::array<std::string_view, member_count<Struct>> slices;
  slice_params(list, raw, slices);
  std::size_t at = 0;
  boost::mp11::mp_for_each<MembersOf<Struct>>([&](auto member) {
    read_param(list[at], slices[at], out.*member.pointer);
    ++at;
  });
}

/// The same for values beside each other.
template <typename... Values>
void read_params(std::span<const Param> list, std::string_view raw, std::tuple<Values...>& out) {
  std::array<std::string_view, sizeof...(Values)> slices;
  slice_params(list, raw, slices);
  std::size_t at = 0;
  const auto read = [&](auto& value) {
    read_param(list[at], slices[at], value);
    ++at;
  };
  std::apply([&](auto&... value) { (read(value), ...); }, out);
}

/// The name of a member of a described struct.
template <typename Struct, typename Member>
std::string_view name_of(Member Struct::*pointer) {
  std::string_view name;
  boost::mp11::mp_for_each<MembersOf<Struct>>([&](auto member) {
    if constexpr (std::same_as<decltype(member.pointer), Member Struct::*const>) {
      if (member.pointer == pointer) name = json_name(member.name);
    }
  });
  return name;
}

}  // namespace duet::rpc
