#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace duet::app {

/// A whole decimal number and nothing else.
std::optional<std::int64_t> parse_number(std::string_view text);

/// `debug, info, warn or error`
std::string one_of(std::span<const std::string_view> choices);

}  // namespace duet::app
