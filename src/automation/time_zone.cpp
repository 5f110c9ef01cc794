#include "automation/time_zone.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace duet::automation {
namespace {

using std::chrono::days;
using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr std::size_t header_size = 44;

std::int64_t big_endian(std::string_view bytes) {
  std::uint64_t value = static_cast<signed char>(bytes.front()) < 0 ? ~std::uint64_t{0} : 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return static_cast<std::int64_t>(value);
}

/// The counts in a header of TZif.
struct Counts {
  std::size_t utc, standard, leaps, times, types, characters;
};

Counts counts_of(std::string_view header) {
  const auto count = [&](std::size_t number) {
    return static_cast<std::size_t>(static_cast<std::uint32_t>(big_endian(header.substr(20 + 4 * number, 4))));
  };
  return {count(0), count(1), count(2), count(3), count(4), count(5)};
}

// Of the data behind a header; times of leap seconds have 4 bytes more each.
std::size_t data_size(const Counts& c, std::size_t time_size) {
  return c.times * (time_size + 1) + c.types * 6 + c.characters + c.leaps * (time_size + 4) + c.standard + c.utc;
}

bool is_header(std::string_view bytes) { return bytes.size() >= header_size && bytes.starts_with("TZif"); }

// `Europe/Berlin`, and nothing that leads out of the folder.
bool is_zone_name(std::string_view name) {
  const bool plain = std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '/' || c == '_' || c == '-' || c == '+';
  });
  return plain && !name.empty() && name.size() < 100 && !name.starts_with('/') && !name.ends_with('/');
}

}  // namespace

/// Reads what POSIX says of `TZ`, with the times of more than a day that RFC 8536 adds.
class TimeZone::RuleReader {
 public:
  explicit RuleReader(std::string_view text) : text_(text) {}

  std::optional<Rule> read() {
    Rule rule;
    if (!name() || !offset(rule.standard)) return std::nullopt;
    if (text_.empty()) return rule;
    rule.has_summer = true;
    if (!name()) return std::nullopt;
    rule.summer = rule.standard + std::chrono::hours(1);
    if (!text_.starts_with(',') && !offset(rule.summer)) return std::nullopt;
    return day(rule.begins) && day(rule.ends) && text_.empty() ? std::optional(rule) : std::nullopt;
  }

 private:
  bool take(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool name() {
    const bool quoted = take('<');
    const auto end = std::ranges::find_if(
        text_, [quoted](char c) { return quoted ? c == '>' : std::isalpha(static_cast<unsigned char>(c)) == 0; });
    const auto length = static_cast<std::size_t>(end - text_.begin());
    text_.remove_prefix(length);
    return length > 0 && (!quoted || take('>'));
  }
  bool number(int& out) {
    std::size_t digits = 0;
    for (out = 0;
         digits < text_.size() && digits < 4 && std::isdigit(static_cast<unsigned char>(text_[digits])) != 0;) {
      out = out * 10 + (text_[digits++] - '0');
    }
    text_.remove_prefix(digits);
    return digits > 0;
  }
  bool time(seconds& out) {
    const bool negative = take('-');
    if (!negative) take('+');
    int hours = 0;
    int minutes = 0;
    int rest = 0;
    if (!number(hours)) return false;
    if (take(':') && !number(minutes)) return false;
    if (take(':') && !number(rest)) return false;
    out = seconds((negative ? -1 : 1) * (hours * 3600 + minutes * 60 + rest));
    return true;
  }
  // POSIX counts to the west.
  bool offset(seconds& out) {
    if (!time(out)) return false;
    out = -out;
    return true;
  }
  bool day(Day& out) {
    if (!take(',')) return false;
    if (take('M')) {
      out.kind = Day::Kind::weekday_of_month;
      if (!number(out.month) || !take('.') || !number(out.week) || !take('.') || !number(out.day)) return false;
      if (out.month < 1 || out.month > 12 || out.week < 1 || out.week > 5 || out.day > 6) return false;
    } else {
      out.kind = take('J') ? Day::Kind::day_without_leap : Day::Kind::day_of_year;
      if (!number(out.day) || out.day > 365) return false;
    }
    return !take('/') || time(out.time);
  }

  std::string_view text_;
};

std::shared_ptr<const TimeZone> TimeZone::find(std::string_view name) {
  if (!is_zone_name(name)) return nullptr;
  const char* const folder = std::getenv("TZDIR");
  const std::filesystem::path path = std::filesystem::path(folder == nullptr ? "/usr/share/zoneinfo" : folder) / name;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return nullptr;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return read(bytes);
}

std::shared_ptr<const TimeZone> TimeZone::read(std::string_view bytes) {
  if (!is_header(bytes) || bytes[4] < '2') return nullptr;
  const std::size_t skipped = header_size + data_size(counts_of(bytes), 4);
  if (bytes.size() < skipped) return nullptr;
  bytes.remove_prefix(skipped);
  if (!is_header(bytes)) return nullptr;
  const Counts counts = counts_of(bytes);
  const std::size_t size = data_size(counts, 8);
  bytes.remove_prefix(header_size);
  if (counts.types == 0 || bytes.size() < size) return nullptr;
  const std::string_view times = bytes.substr(0, counts.times * 8);
  const std::string_view which = bytes.substr(times.size(), counts.times);
  const std::string_view types = bytes.substr(times.size() + which.size(), counts.types * 6);
  const auto offset_of = [&types](std::size_t type) { return seconds(big_endian(types.substr(type * 6, 4))); };

  TimeZone zone;
  zone.first_ = offset_of(0);
  for (std::size_t i = 0; i < counts.times; ++i) {
    const auto type = static_cast<unsigned char>(which[i]);
    if (type >= counts.types) return nullptr;
    zone.changes_.push_back({sys_seconds(seconds(big_endian(times.substr(i * 8, 8)))), offset_of(type)});
  }
  std::string_view footer = bytes.substr(size);
  if (footer.starts_with('\n') && footer.size() > 2)
    zone.rule_ = RuleReader(footer.substr(1, footer.size() - 2)).read();
  return std::make_shared<const TimeZone>(std::move(zone));
}

std::chrono::seconds TimeZone::offset_at(sys_seconds at) const {
  const auto next = std::ranges::upper_bound(changes_, at, {}, &Change::at);
  if (next == changes_.end() && rule_) return offset_by_rule(at);
  return next == changes_.begin() ? first_ : std::prev(next)->offset;
}

std::chrono::local_seconds TimeZone::local_of(const Day& day, std::chrono::year year) {
  using std::chrono::local_days;
  const local_days new_year(year / std::chrono::January / 1);
  if (day.kind == Day::Kind::day_of_year) return new_year + days(day.day) + day.time;
  if (day.kind == Day::Kind::day_without_leap) {
    const bool after_leap_day = year.is_leap() && day.day >= 60;
    return new_year + days(day.day - 1 + (after_leap_day ? 1 : 0)) + day.time;
  }
  const auto month = year / std::chrono::month(static_cast<unsigned>(day.month));
  const std::chrono::weekday weekday(static_cast<unsigned>(day.day));
  const local_days at = day.week == 5 ? local_days(month / weekday[std::chrono::last])
                                      : local_days(month / weekday[static_cast<unsigned>(day.week)]);
  return at + day.time;
}

// South of the equator summer ends before it begins.
std::chrono::seconds TimeZone::offset_by_rule(sys_seconds at) const {
  if (!rule_->has_summer) return rule_->standard;
  const std::chrono::year_month_day date(std::chrono::floor<days>(at + rule_->standard));
  const sys_seconds begins(local_of(rule_->begins, date.year()).time_since_epoch() - rule_->standard);
  const sys_seconds ends(local_of(rule_->ends, date.year()).time_since_epoch() - rule_->summer);
  const bool is_summer = begins < ends ? at >= begins && at < ends : at >= begins || at < ends;
  return is_summer ? rule_->summer : rule_->standard;
}

}  // namespace duet::automation
