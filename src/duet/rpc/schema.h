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
///
/// What is read and what is written differ: a member with an initialiser may be absent or null when it is read, and is
/// always written.
class DUET_API SchemaMaker {
 public:
  enum class Of : bool { read, written };
  explicit SchemaMaker(Of of) : is_read_(of == Of::read) {}

  /// The same, or null.
  static boost::json::object or_null(boost::json::object schema);

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

  template <IntegerType T>
  static boost::json::object make_integer() {
    boost::json::object schema = plain(Type::integer);
    schema["minimum"] = std::numeric_limits<T>::min();
    schema["maximum"] = std::numeric_limits<T>::max();
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
      const bool is_optional = OptionalType<Member>;
      const bool may_be_absent = is_read_ ? absent_members<T>()[at++] : is_optional;
      const bool may_be_null = may_be_absent && !is_optional;  // an optional says so itself
      properties[json_name(member.name)] = may_be_null ? or_null(make<Member>()) : make<Member>();
      if (!may_be_absent) required.emplace_back(json_name(member.name));
    });
    open_.pop_back();
    boost::json::object schema{{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty()) schema["required"] = std::move(required);
    return schema;
  }

  bool is_read_;
  std::vector<const char*> open_;  // the structs that are being described
};

template <typename T, SchemaMaker::Of of>
boost::json::object schema_of() {
  return SchemaMaker(of).make<T>();
}

}  // namespace duet::rpc
