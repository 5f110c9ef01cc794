#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace re2 {
class RE2;
}

namespace duet::pattern {

/// A regular expression in the syntax of RE2, matched in time that grows with the text's length only. A byte that is
/// not UTF-8 is a character of its own, U+FFFD. A group's name may be spelt `(?<name>…)` as well as `(?P<name>…)`.
class Regex {
 public:
  bool found_in(std::string_view text) const;
  bool matches_all_of(std::string_view text) const;

  struct Match {
    std::string_view all = {};
    std::optional<std::string_view> group = {};  ///< what the group of that name took; none if it took nothing
  };
  /// The last match in a text, which must be UTF-8; of more than a thousand, the thousandth.
  std::optional<Match> last_match(std::string_view text, const std::string& group) const;

 private:
  friend std::variant<Regex, std::string> parse_regex(std::string_view text);
  explicit Regex(std::shared_ptr<const re2::RE2> compiled) : compiled_(std::move(compiled)) {}

  std::shared_ptr<const re2::RE2> compiled_;  // it can be neither copied nor moved
};

/// The text says what is wrong.
std::variant<Regex, std::string> parse_regex(std::string_view text);

}  // namespace duet::pattern
