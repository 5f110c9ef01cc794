#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/mp11/algorithm.hpp>

#include "duet/api.h"
#include "duet/rpc/initialisers.h"
#include "duet/rpc/types.h"

namespace duet::rpc {

/// Makes the JSON Schema of C++ types. Inside a struct that contains itself, through a list say, it is just an object.
class DUET_API SchemaMaker {
 public:
  template <typename T>
  boost::json::object make() {
    if constexpr (is_json_of<T>) {
      return make<typename T::Shape>();
    } else if constexpr (OptionalType<T>) {
      return or_null(make<typename T::value_type>());
    } else if constexpr (EnumType<T>) {
      boost::json::array words;
      for (const auto& each : EnumWords<T>::list) words.emplace_back(each.word);
      return {{"type", "string"}, {"enum", std::move(words)}};
    } else if constexpr (IntegerType<T>) {
      return make_integer<T>();
    } else if constexpr (ListType<T>) {
      return {{"type", "array"}, {"items", make<typename T::value_type>()}};
    } else if constexpr (StructType<T>) {
      return make_struct<T>();
    } else if constexpr (MapType<T>) {
      return {{"type", "object"}, {"additionalProperties", make<typename T::mapped_type>()}};
    } else {
      return plain(type_of<T>());
    }
  }

 private:
  template <typename T>
  static constexpr char mark = 0;  // its address stands for the type

  static boost::json::object plain(Type type) {
    if (type == Type::any) return {};
    return {{"type", name_of(type)}};
  }

  static boost::json::object or_null(boost::json::object schema);

  // The range of std::int64_t goes without saying.
  template <IntegerType T>
  static boost::json::object make_integer() {
    boost::json::object schema = plain(Type::integer);
    if constexpr (!std::same_as<T, std::int64_t>) schema["minimum"] = std::numeric_limits<T>::min();
    if constexpr (sizeof(T) < sizeof(std::int64_t)) schema["maximum"] = std::numeric_limits<T>::max();
    return schema;
  }

  template <StructType T>
  boost::json::object make_struct() {
    if (std::ranges::find(open_, &mark<T>) != open_.end()) return plain(Type::object);
    open_.push_back(&mark<T>);
    boost::json::object properties;
    boost::json::array required;
    std::size_t at = 0;
    boost::mp11::mp_for_each<MembersOf<T>>([&](auto member) {
      using Member = std::remove_cvref_t<decltype(std::declval<T&>().*member.pointer)>;
      properties[member.name] = make<Member>();
      if (!absent_members<T>()[at++]) required.emplace_back(member.name);
    });
    open_.pop_back();
    boost::json::object schema{{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty()) schema["required"] = std::move(required);
    return schema;
  }

  std::vector<const char*> open_;  // the structs that are being described
};

template <typename T>
boost::json::object schema_of() {
  return SchemaMaker().make<T>();
}

}  // namespace duet::rpc
