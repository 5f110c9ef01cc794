#include "app/cli/option_value.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "app/words/duration.h"
#include "app/words/near_miss.h"
#include "app/words/number.h"

namespace duet::app {
namespace {

using Checked = std::variant<std::string, BadValue>;

BadValue bad(const OptionEntry& option, std::string_view word, const std::string& right) {
  return {"bad value '" + std::string(word) + "' of option '--" + std::string(option.name) + "': it is " + right};
}

bool same_in_any_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::ranges::equal(a, b, {}, lower, lower);
}

Checked checked_choice(const OptionEntry& option, std::string_view word) {
  for (const std::string_view choice : option.choices) {
    if (same_in_any_case(choice, word)) return std::string(choice);
  }
  BadValue out = bad(option, word, "one of " + one_of(option.choices));
  out.suggestion = near_miss(word, {option.choices.begin(), option.choices.end()});
  return out;
}

Checked checked_number(const OptionEntry& option, std::string_view word) {
  const std::optional<std::int64_t> number = parse_number(word);
  if (number && *number >= option.least && *number <= option.most) return std::string(word);
  std::string right = "a whole number";
  if (option.least > std::numeric_limits<std::int64_t>::min()) right += ", at least " + std::to_string(option.least);
  if (option.most < std::numeric_limits<std::int64_t>::max()) right += ", at most " + std::to_string(option.most);
  return bad(option, word, right);
}

Checked checked_duration(const OptionEntry& option, std::string_view word) {
  const auto duration = parse_duration(word);
  if (duration && duration->count() >= option.least) return std::string(word);
  return bad(option, word, std::string(duration_forms) + (option.least > 0 ? ", above 0" : "") + ", up to a year");
}

}  // namespace

Checked checked_value(const OptionEntry& option, std::string_view word) {
  if (!option.choices.empty()) return checked_choice(option, word);
  if (option.kind == ValueKind::number) return checked_number(option, word);
  if (option.kind == ValueKind::duration) return checked_duration(option, word);
  if (word.empty()) return BadValue{"the value of option '--" + std::string(option.name) + "' is empty"};
  return std::string(word);
}

}  // namespace duet::app
