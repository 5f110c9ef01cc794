#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace duet::task::postgres {

/// An argument of a call: text as the server reads it, or none for NULL.
///
/// The server finds the type by itself. Text may not hold a zero byte, which no text of PostgreSQL can; bytes go
/// through bytes_of().
using Argument = std::optional<std::string>;

/// A number or a flag.
template <std::integral Value>
Argument argument_of(Value value) {
  if constexpr (std::is_same_v<Value, bool>) return value ? "t" : "f";
  return std::to_string(value);
}
template <std::integral Value>
Argument argument_of(std::optional<Value> value) {
  return value ? argument_of(*value) : std::nullopt;
}

/// Bytes as a bytea: `\x…`.
std::string bytes_of(std::string_view bytes);

/// An array literal of one dimension, for any type of element: `{"a","b \"c\"",NULL}`.
std::string array_of(std::span<const Argument> elements);
std::string array_of(const std::vector<Argument>& elements);
std::string array_of(const std::vector<std::string>& elements);
std::string array_of(const std::vector<std::int64_t>& elements);
std::string array_of(const std::vector<bool>& elements);

}  // namespace duet::task::postgres
