#include "app/view/table.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "app/view/display_text.h"
#include "app/words/duration.h"
#include "app/words/number.h"

namespace duet::app {
namespace {

constexpr std::size_t between = 2;  // columns
constexpr std::size_t narrowest = 4;
constexpr std::size_t longest_whole = 24;  // a name that is not cut
constexpr std::size_t default_width = 80;

std::string painted(const std::string& text, Table::Paint paint, const TextStyle& style) {
  switch (paint) {
    case Table::Paint::name:
      return style.name(text);
    case Table::Paint::good:
      return style.good(text);
    case Table::Paint::fault:
      return style.fault(text);
    case Table::Paint::faint:
      return style.faint(text);
    default:
      return text;
  }
}

}  // namespace

std::vector<std::size_t> Table::widths(std::optional<std::size_t> room) const {
  std::vector<std::size_t> out;
  for (const std::string& heading : headings_) out.push_back(display_width(heading));
  for (const std::vector<Cell>& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) out[i] = std::max(out[i], display_width(one_line(row[i].text)));
  }
  if (room) fit(out, *room);
  return out;
}

std::size_t Table::least(std::size_t column, std::size_t width) const {
  const bool is_name = (column == 0 || headings_[column] == "TASK") && width <= longest_whole;
  return is_name ? width : std::min(width, narrowest);
}

void Table::fit(std::vector<std::size_t>& widths, std::size_t room) const {
  std::size_t total = between * (widths.size() - 1);
  std::size_t needed = total;
  for (std::size_t i = 0; i < widths.size(); ++i) {
    total += widths[i];
    needed += least(i, widths[i]);
  }
  for (std::size_t i = widths.size(); needed > room && i > 1; --i) {
    const std::size_t width = widths[i - 1];
    if (width <= longest_whole && headings_[i - 1] == "TASK") continue;
    needed -= least(i - 1, width) + between;
    total -= width + between;
    widths[i - 1] = 0;
  }
  for (std::size_t i = widths.size(); total > room && i > 0; --i) {
    const std::size_t cut = std::min(widths[i - 1] - least(i - 1, widths[i - 1]), total - room);
    widths[i - 1] -= cut;
    total -= cut;
  }
}

std::string Table::text(const TextStyle& style, std::optional<std::size_t> width) const {
  const std::vector<std::size_t> columns = widths(width);
  std::string out;
  const auto add_line = [&](const auto& cell_at) {
    std::string gap;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i] == 0) continue;
      const auto [text, paint] = cell_at(i);
      const std::string cut = cut_to_width(one_line(text), columns[i]);
      if (cut.empty()) {
        gap.append(columns[i] + between, ' ');
        continue;
      }
      out += gap + painted(cut, paint, style);
      gap.assign(columns[i] - display_width(cut) + between, ' ');
    }
    out += '\n';
  };
  add_line([&](std::size_t i) { return Cell{headings_[i], Paint::faint}; });
  for (const std::vector<Cell>& row : rows_) add_line([&](std::size_t i) { return row[i]; });
  return out;
}

std::optional<std::size_t> terminal_width(int fd) {
  if (isatty(fd) != 1) return std::nullopt;
  struct winsize size {};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* const columns = std::getenv("COLUMNS");
  const std::optional<std::int64_t> number = columns == nullptr ? std::nullopt : parse_number(columns);
  return number && *number > 0 ? static_cast<std::size_t>(*number) : default_width;
}

std::optional<base::UtcTime> parse_time(std::string_view text) {
  using namespace std::chrono;
  constexpr std::string_view pattern = "0000-00-00T00:00:00.000Z";
  const auto fits = [](char c, char wanted) { return wanted == '0' ? c >= '0' && c <= '9' : c == wanted; };
  if (!std::ranges::equal(text, pattern, fits)) return std::nullopt;
  const auto number = [text](std::size_t at, std::size_t length) {
    return static_cast<unsigned>(*parse_number(text.substr(at, length)));
  };
  const year_month_day date{year(static_cast<int>(number(0, 4))), month(number(5, 2)), day(number(8, 2))};
  if (!date.ok() || date.year() < year(1970) || date.year() > year(2199)) return std::nullopt;  // it would overflow
  return sys_days(date) + hours(number(11, 2)) + minutes(number(14, 2)) + seconds(number(17, 2)) +
         milliseconds(number(20, 3));
}

std::string relative_time(const std::string& text, base::UtcTime now) {
  using std::chrono::milliseconds;
  const std::optional<base::UtcTime> time = parse_time(text);
  if (!time) return text;
  const auto passed = std::chrono::duration_cast<milliseconds>(now - *time);
  const auto shown = [](milliseconds span) {
    const std::string whole = readable_duration(std::chrono::floor<std::chrono::seconds>(span));
    return whole.substr(0, whole.find(' '));  // the larger unit is enough
  };
  if (passed > -std::chrono::seconds(1) && passed < std::chrono::seconds(1)) return "just now";
  return passed.count() > 0 ? shown(passed) + " ago" : "in " + shown(-passed);
}

}  // namespace duet::app
