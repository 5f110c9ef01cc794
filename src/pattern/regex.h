#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace re2 {
class RE2;
}

namespace duet::pattern {

/// A regular expression in the syntax of RE2, matched in time that grows with the text's length only. A byte that is
/// not UTF-8 is a character of its own, U+FFFD.
class Regex {
 public:
  bool found_in(std::string_view text) const;
  bool matches_all_of(std::string_view text) const;

 private:
  friend std::variant<Regex, std::string> parse_regex(std::string_view text);
  explicit Regex(std::shared_ptr<const re2::RE2> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const re2::RE2> compiled_;  // it can be neither copied nor moved
};

/// The text says what is wrong.
std::variant<Regex, std::string> parse_regex(std::string_view text);

}  // namespace duet::pattern
