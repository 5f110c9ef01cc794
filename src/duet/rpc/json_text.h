#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "duet/api.h"
#include "duet/rpc/utf8.h"

namespace duet::rpc {

/// Small conversions between JSON spelling and C++ values. The decoding functions take text that a
/// scan has found valid; the appending ones only ever produce valid JSON in valid UTF-8.

inline int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// What stands between the quotes, with escapes resolved; half a surrogate pair becomes U+FFFD.
DUET_API std::string decode_string_inside(std::string_view inside);

/// The same for a whole token with its quotes.
DUET_API std::string decode_string(std::string_view token);

/// `"object"`, `"array"`, `"string"`, `"number"`, `"boolean"` or `"null"`.
DUET_API std::string_view json_type(std::string_view value);

/// The number if it is a whole one that fits (`5`, `5.0` and `5e0` are all five).
template <typename Whole>  // std::int64_t or std::uint64_t
DUET_API std::optional<Whole> decode_whole(std::string_view number);
extern template std::optional<std::int64_t> decode_whole(std::string_view number);
extern template std::optional<std::uint64_t> decode_whole(std::string_view number);
/// The nearest double; infinite when the number is beyond all doubles. No locale matters.
DUET_API double decode_number(std::string_view number);

/// Appends `text` as a JSON string; bytes that are not UTF-8 become U+FFFD.
DUET_API void append_string(std::string& out, std::string_view text);
DUET_API std::string quoted(std::string_view text);

/// Appends a number in its shortest spelling; one that JSON cannot write becomes null.
DUET_API void append_number(std::string& out, std::int64_t number);
DUET_API void append_number(std::string& out, std::uint64_t number);
DUET_API void append_number(std::string& out, double number);

}  // namespace duet::rpc
