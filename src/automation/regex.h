#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "automation/pattern.h"

namespace duet::automation {

/// A regular expression that is looked for anywhere in a text, in time that grows with the text's length only.
///
/// It has what RE2 has in common with everybody: `.` `[a-z]` `[^a-z]` `\d \w \s \b` and their opposites, `^ $` (start
/// and end of the text), `( ) (?: ) |`, `* + ? {2,5}`, and `(?i)` in front for letters of either case (ASCII). No
/// back-references and no looking around, which cannot be done in linear time.
class Regex {
 public:
  bool found_in(std::string_view text) const { return pattern_.matches_in(text); }

 private:
  friend std::variant<Regex, std::string> parse_regex(std::string_view text);
  explicit Regex(const PatternNode& node) : pattern_(node) {}

  Pattern pattern_;
};

/// The text says what is wrong.
std::variant<Regex, std::string> parse_regex(std::string_view text);

}  // namespace duet::automation
