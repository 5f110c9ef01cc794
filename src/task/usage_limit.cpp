#include "task/usage_limit.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <ctime>
#include <utility>
#include <variant>

#include "duet/rpc/utf8.h"
#include "task/time_text.h"

namespace duet::task {
namespace {

constexpr char until_group[] = "until";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_number(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); }

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// `.*(?<until>\d+)` takes the last digit only, since the star takes all it can: the whole number is meant.
std::string_view whole_number(std::string_view digits, std::string_view text) {
  const char* begin = digits.data();
  const char* end = begin + digits.size();
  while (begin != text.data() && is_digit(*(begin - 1))) --begin;
  while (end != text.data() + text.size() && is_digit(*end)) ++end;
  return {begin, static_cast<std::size_t>(end - begin)};
}

std::optional<base::UtcTime> since_1970(std::string_view digits) {
  constexpr std::int64_t least_milliseconds = 100'000'000'000;  // as seconds it would be the year 5138
  constexpr std::int64_t most_seconds = 9'223'372'036;          // of what a time can hold
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || number > most_seconds * 1000) return std::nullopt;
  if (number >= least_milliseconds) return base::UtcTime(std::chrono::milliseconds(number));
  if (number > most_seconds) return std::nullopt;
  return base::UtcTime(std::chrono::seconds(number));
}

std::optional<base::UtcTime> from_local(std::tm time) {
  time.tm_isdst = -1;
  const std::time_t found = std::mktime(&time);
  return found == -1 ? std::nullopt : std::optional(base::UtcTime(std::chrono::seconds(found)));
}

// `2026-11-16 15:30:00`, without a zone.
std::optional<base::UtcTime> local_date(std::string_view text) {
  const std::optional<base::UtcTime> as_utc = parse_time(std::string(text) + "Z");
  if (!as_utc) return std::nullopt;
  const std::time_t wanted = std::chrono::system_clock::to_time_t(*as_utc);
  std::tm fields{};
  gmtime_r(&wanted, &fields);
  return from_local(fields);
}

std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// `pm`, `p.m.`, `PM`: the hours that it adds. None: it is something else.
std::optional<int> half_of_day(std::string_view text, int hour) {
  std::string letters;
  for (const char c : without_blanks(text)) {
    if (c != '.') letters += static_cast<char>(c | 0x20);
  }
  if (letters.empty()) return 0;
  if (hour < 1 || hour > 12) return std::nullopt;
  if (letters == "am") return hour == 12 ? -12 : 0;
  if (letters == "pm") return hour == 12 ? 0 : 12;
  return std::nullopt;
}

std::optional<base::UtcTime> time_of_day(std::string_view text, base::UtcTime now) {
  const std::optional<int> hour = take_number(text);
  if (!hour || text.empty()) return std::nullopt;
  std::array<int, 2> minute_and_second{};
  for (int& part : minute_and_second) {
    if (!text.starts_with(':')) break;
    text.remove_prefix(1);
    const std::optional<int> found = take_number(text);
    if (!found || *found > 59) return std::nullopt;
    part = *found;
  }
  const std::optional<int> half = half_of_day(text, *hour);
  if (!half || *hour + *half > 23) return std::nullopt;
  const std::time_t today = std::chrono::system_clock::to_time_t(now);
  std::tm fields{};
  localtime_r(&today, &fields);
  fields.tm_hour = *hour + *half;
  fields.tm_min = minute_and_second[0];
  fields.tm_sec = minute_and_second[1];
  std::optional<base::UtcTime> time = from_local(fields);
  if (time && *time > now) return time;
  ++fields.tm_mday;
  return from_local(fields);
}

}  // namespace

UsageLimit::UsageLimit(UsageHold hold) : hold_(std::move(hold)) {
  if (hold_.output.empty()) return;
  auto parsed = pattern::parse_regex(hold_.output);
  if (auto* regex = std::get_if<pattern::Regex>(&parsed)) pattern_ = std::move(*regex);
}

bool UsageLimit::could_be(const Outcome& outcome) const {
  if (outcome.kind != Outcome::Kind::exited || outcome.timed_out) return false;
  if (!hold_.output.empty() && !pattern_) return false;
  if (hold_.exit_codes.empty()) return outcome.code != 0;
  return std::ranges::find(hold_.exit_codes, outcome.code) != hold_.exit_codes.end();
}

std::optional<base::UtcTime> UsageLimit::until(const Outcome& outcome, std::string_view output,
                                               base::UtcTime now) const {
  if (!could_be(outcome)) return std::nullopt;
  const base::UtcTime otherwise = now + hold_.length;
  if (!pattern_) return otherwise;
  const std::string text = rpc::valid_utf8(std::string(output));
  const std::optional<pattern::Regex::Match> match = pattern_->last_match(text, until_group);
  if (!match) return std::nullopt;
  if (!match->group) return otherwise;
  const std::string_view told = is_number(*match->group) ? whole_number(*match->group, text) : *match->group;
  const std::optional<base::UtcTime> time = told_time(told, now);
  return time && *time > now && *time <= now + furthest ? *time : otherwise;
}

std::optional<base::UtcTime> told_time(std::string_view text, base::UtcTime now) {
  text = without_blanks(text);
  if (is_number(text)) return since_1970(text);
  if (const auto time = parse_time(text)) return time;
  if (const auto time = local_date(text)) return time;
  return time_of_day(text, now);
}

}  // namespace duet::task
