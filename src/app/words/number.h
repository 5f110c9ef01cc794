#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace duet::app {

/// A whole decimal number and nothing else.
std::optional<std::int64_t> parse_number(std::string_view text);

/// A decimal number that is finite, as in `2` or `1.5`, and nothing else.
std::optional<double> parse_decimal(std::string_view text);

/// `debug, info, warn or error`; with another word before the last one if that is given.
std::string one_of(std::span<const std::string_view> choices, std::string_view last_word = "or");

}  // namespace duet::app
