#pragma once

#include <cstdint>
#include <string_view>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "bridge/text.h"

namespace duet::bridge {

// Members of what others have written as JSON. One that is missing, null or of another type than it should be is none.

inline const boost::json::value* member(const boost::json::object& from, std::string_view name) {
  const boost::json::value* found = from.if_contains(name);
  return found != nullptr && !found->is_null() ? found : nullptr;
}

inline const boost::json::value* member(const boost::json::value& from, std::string_view name) {
  const boost::json::object* object = from.if_object();
  return object != nullptr ? member(*object, name) : nullptr;
}

template <typename From>
std::string_view text_member(const From& from, std::string_view name) {
  const boost::json::value* found = member(from, name);
  return found != nullptr && found->is_string() ? std::string_view(found->get_string()) : std::string_view();
}

inline std::uint64_t number_member(const boost::json::value& from, std::string_view name) {
  const boost::json::value* found = member(from, name);
  const bool counts = found != nullptr && found->is_int64() && found->get_int64() > 0;
  return counts ? static_cast<std::uint64_t>(found->get_int64()) : 0;
}

inline Position position_member(const boost::json::value& range, std::string_view name) {
  const boost::json::value* found = member(range, name);
  if (found == nullptr) return {};
  return {.line = number_member(*found, "line"), .character = number_member(*found, "character")};
}

}  // namespace duet::bridge
