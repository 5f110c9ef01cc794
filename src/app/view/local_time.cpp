#include "app/view/local_time.h"

#include <array>
#include <ctime>

#include "app/view/table.h"

namespace duet::app {
namespace {

constexpr std::size_t iso_size = std::string_view("2026-11-16T14:02:11.000Z").size();

std::tm local_fields(base::UtcTime moment) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(moment);
  std::tm fields{};
  localtime_r(&seconds, &fields);
  return fields;
}

std::string local_text(base::UtcTime time, const char* pattern) {
  const std::tm fields = local_fields(time);
  std::array<char, 32> room{};
  return {room.data(), std::strftime(room.data(), room.size(), pattern, &fields)};
}

}  // namespace

std::string date_and_time(base::UtcTime time) { return local_text(time, "%Y-%m-%d %H:%M:%S"); }

std::string clock_time(base::UtcTime time, base::UtcTime now) {
  const std::tm then = local_fields(time);
  const std::tm today = local_fields(now);
  const bool same_day = then.tm_year == today.tm_year && then.tm_yday == today.tm_yday;
  return same_day ? local_text(time, "%H:%M:%S") : date_and_time(time);
}

std::string with_local_times(std::string_view text, base::UtcTime now) {
  std::string out;
  while (!text.empty()) {
    const std::optional<base::UtcTime> time = parse_time(text.substr(0, iso_size));
    out += time ? clock_time(*time, now) : std::string(text.substr(0, 1));
    text.remove_prefix(time ? iso_size : 1);
  }
  return out;
}

}  // namespace duet::app
