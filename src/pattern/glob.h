#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "pattern/regex.h"

namespace duet::pattern {

/// A pattern for paths with `/` between the names: `*` and `?` stay within a name, `**` as a whole name stands for any
/// number of folders (at the end: for everything below), `[a-z]` and `[!a-z]` for a character, `{a,b}` for either; `\`
/// takes away a character's meaning. Upper and lower case differ; a leading dot is like any other character.
class Glob {
 public:
  bool matches(std::string_view path) const { return regex_.matches_all_of(path); }

 private:
  friend std::variant<Glob, std::string> parse_glob(std::string_view text);
  explicit Glob(Regex regex) : regex_(std::move(regex)) {}

  Regex regex_;
};

/// The text says what is wrong.
std::variant<Glob, std::string> parse_glob(std::string_view text);

}  // namespace duet::pattern
