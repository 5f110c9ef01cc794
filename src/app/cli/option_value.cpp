#include "app/cli/option_value.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "app/words/bytes.h"
#include "app/words/duration.h"
#include "app/words/near_miss.h"
#include "app/words/number.h"
#include "app/words/task_name.h"
#include "app/words/tls_url.h"
#include "duet/rpc/utf8.h"

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

Checked checked_decimal(const OptionEntry& option, std::string_view word) {
  const std::optional<double> number = parse_decimal(word);
  return number && *number > 0 ? Checked(std::string(word)) : Checked(bad(option, word, "a number above 0, as in 1.5"));
}

Checked checked_bytes(const OptionEntry& option, std::string_view word) {
  const std::optional<std::uint64_t> bytes = parse_bytes(word);
  const bool fits = bytes && *bytes <= std::numeric_limits<std::int64_t>::max();
  if (fits && static_cast<std::int64_t>(*bytes) >= option.least) return std::string(word);
  const bool has_least = option.least > 0;
  return bad(option, word,
             std::string(bytes_forms) + (has_least ? ", at least " + std::to_string(option.least) : std::string()));
}

Checked checked_duration(const OptionEntry& option, std::string_view word) {
  const auto duration = parse_duration(word);
  if (duration && duration->count() >= option.least) return std::string(word);
  return bad(option, word, std::string(duration_forms) + (option.least > 0 ? ", above 0" : "") + ", up to a year");
}

Checked checked_pair(const OptionEntry& option, std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals != std::string_view::npos && equals > 0) return std::string(word);
  return bad(option, word, "NAME=VALUE");
}

Checked checked_far_daemon(const OptionEntry& option, std::string_view word) {
  return parse_tls_url(word) ? Checked(std::string(word)) : Checked(bad(option, word, std::string(tls_url_forms)));
}

}  // namespace

// All others are sent as JSON, which would have something else in their place.
Checked checked_value(const OptionEntry& option, std::string_view word) {
  const bool is_name_of_file = option.kind == ValueKind::file || option.kind == ValueKind::folder;
  if (!is_name_of_file && !rpc::is_utf8(word)) {
    return BadValue{"the value of option '--" + std::string(option.name) + "' is not UTF-8"};
  }
  if (!option.choices.empty()) return checked_choice(option, word);
  if (option.kind == ValueKind::number) return checked_number(option, word);
  if (option.kind == ValueKind::decimal) return checked_decimal(option, word);
  if (option.kind == ValueKind::bytes) return checked_bytes(option, word);
  if (option.kind == ValueKind::duration) return checked_duration(option, word);
  if (option.kind == ValueKind::pair) return checked_pair(option, word);
  if (option.kind == ValueKind::far_daemon) return checked_far_daemon(option, word);
  if (word.empty()) return BadValue{"the value of option '--" + std::string(option.name) + "' is empty"};
  if (is_task(option.kind)) return task_name(word);
  return std::string(word);
}

}  // namespace duet::app
