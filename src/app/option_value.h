#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "app/command_table.h"

namespace duet::app {

/// Why a value is not taken.
struct BadValue {
  std::string message;
  std::string suggestion = {};
};

/// The value of an option if it is as the option's entry wants it, a choice spelt as in the entry; else what is wrong
/// with it, in one line that says what would be right.
std::variant<std::string, BadValue> checked_value(const OptionEntry& option, std::string_view word);

/// A whole decimal number and nothing else.
std::optional<std::int64_t> parse_number(std::string_view text);

/// `debug, info, warn or error`
std::string one_of(std::span<const std::string_view> choices);

}  // namespace duet::app
