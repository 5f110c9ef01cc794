#pragma once

#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "duet/api.h"

namespace duet::rpc {

/// JSON text known to be valid, as a tree. Half a surrogate pair becomes U+FFFD, a number beyond all
/// doubles an infinite one. Nesting is limited to what a message may have; deeper throws std::length_error.
DUET_API boost::json::value parse_value(std::string_view text);

/// False: a number in it was beyond all doubles.
DUET_API bool has_finite_numbers(const boost::json::value& tree);

/// A tree as JSON text on one line, always valid: bytes that are not UTF-8 become U+FFFD, numbers
/// that JSON cannot write become null.
DUET_API void append_value(std::string& out, const boost::json::value& value);
DUET_API void append_value(std::string& out, const boost::json::array& array);
DUET_API void append_value(std::string& out, const boost::json::object& object);
DUET_API std::string to_text(const boost::json::value& value);

}  // namespace duet::rpc
