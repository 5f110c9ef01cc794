#include "task/time_text.h"

#include <chrono>
#include <cstdint>

namespace duet::task {
namespace {

/// Takes what it expects off the front of a text; once something was not there, it has failed for good.
class TimeReader {
 public:
  explicit TimeReader(std::string_view text) : rest_(text) {}

  int number(std::size_t digits) {
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      good_ = good_ && i < rest_.size() && rest_[i] >= '0' && rest_[i] <= '9';
      if (good_) value = 10 * value + (rest_[i] - '0');
    }
    if (good_) rest_.remove_prefix(digits);
    return value;
  }
  bool take_one_of(std::string_view characters) {
    if (!good_ || rest_.empty() || characters.find(rest_.front()) == characters.npos) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(std::string_view characters) { good_ = take_one_of(characters); }
  bool begins_with(char c) const { return good_ && rest_.starts_with(c); }
  bool has_digit() const { return good_ && !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; }
  bool is_complete() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

std::chrono::milliseconds fraction_of(TimeReader& text) {
  std::int64_t millis = 0;
  std::int64_t unit = 100;
  if (!text.take_one_of(".,")) return {};
  millis += unit * text.number(1);
  while (text.has_digit()) {
    unit /= 10;
    millis += unit * text.number(1);
  }
  return std::chrono::milliseconds(millis);
}

// None: no zone, or not one that there can be.
std::optional<std::chrono::minutes> zone_of(TimeReader& text) {
  if (text.take_one_of("Zz")) return std::chrono::minutes(0);
  const bool is_west = text.begins_with('-');
  if (!text.take_one_of("+-")) return std::nullopt;
  const int hours = text.number(2);
  int minutes = 0;
  if (text.take_one_of(":") || text.has_digit()) minutes = text.number(2);
  if (hours > 23 || minutes > 59) return std::nullopt;
  const std::chrono::minutes zone(60 * hours + minutes);
  return is_west ? -zone : zone;
}

}  // namespace

std::optional<base::UtcTime> parse_time(std::string_view text) {
  namespace chrono = std::chrono;
  TimeReader reader(text);
  const chrono::year year(reader.number(4));
  reader.expect("-");
  const chrono::month month(static_cast<unsigned>(reader.number(2)));
  reader.expect("-");
  const chrono::day day(static_cast<unsigned>(reader.number(2)));
  reader.expect("Tt ");
  const int hour = reader.number(2);
  reader.expect(":");
  const int minute = reader.number(2);
  const int second = reader.take_one_of(":") ? reader.number(2) : 0;
  const chrono::milliseconds fraction = fraction_of(reader);
  const std::optional<chrono::minutes> zone = zone_of(reader);
  const chrono::year_month_day date(year, month, day);
  const bool is_sound = reader.is_complete() && zone && date.ok() && year >= chrono::year(1970) &&
                        year <= chrono::year(2199) && hour <= 23 && minute <= 59 && second <= 60;
  if (!is_sound) return std::nullopt;
  return base::UtcTime(chrono::sys_days(date)) + chrono::hours(hour) + chrono::minutes(minute) +
         chrono::seconds(second) + fraction - *zone;
}

}  // namespace duet::task
