#pragma once

#include <string>

#include <boost/json/value.hpp>

namespace duet::task {

/// Text as JSON that is written down. JSON has no bytes, and a file's name may be any: what is not UTF-8 becomes an
/// array of its bytes.
boost::json::value text_or_bytes(const std::string& value);
/// Throws if it is anything else.
std::string from_text_or_bytes(const boost::json::value& saved);

}  // namespace duet::task
