#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "app/cli/command_table.h"

namespace duet::app {

/// Why a value is not taken.
struct BadValue {
  std::string message;
  std::string suggestion = {};
};

/// The value of an option if it is as the option's entry wants it and UTF-8, which only names of files and folders need
/// not be, a choice spelt as in the entry; else what is wrong with it, in one line that says what would be right.
std::variant<std::string, BadValue> checked_value(const OptionEntry& option, std::string_view word);

}  // namespace duet::app
