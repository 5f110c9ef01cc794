#include "app/top/layout.h"

#include <array>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/top/screens.h"
#include "app/view/display_text.h"

namespace duet::app::top {
namespace {

// As many of the keys as there is room for: the last ones first, since they are the way out.
std::string keys_text(std::span<const std::string> keys, std::size_t columns) {
  constexpr std::string_view between = "   ";
  std::string out;
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    const std::string longer = out.empty() ? *key : *key + std::string(between) + out;
    if (!out.empty() && display_width(longer) > columns) break;
    out = longer;
  }
  return out;
}

Line foot(const Board& board, const View& view, std::size_t columns) {
  LineWriter line(columns);
  if (view.question()) {
    line.add("Cancel " + task::to_text(*view.question()) + "?", Paint::warn).add("  y: yes   any other key: no");
    return line.take();
  }
  if (!view.message().empty()) return line.add(view.message(), Paint::warn).take();
  const std::string pause = board.is_paused() ? "p resume" : "p pause";
  std::vector<std::string> keys{"any key: back"};
  if (view.page() == View::Page::list) keys = {"↑↓ choose", "enter follow", "c cancel", pause, "? help", "q quit"};
  if (view.page() == View::Page::task) keys = {"↑↓ scroll", "c cancel", pause, "? help", "q back"};
  return line.add(keys_text(keys, columns), Paint::faint).take();
}

}  // namespace

std::string clock_text(base::UtcTime time, const Moment& moment) {
  using namespace std::chrono;
  const auto local = floor<seconds>(time) + moment.zone;
  const auto day = floor<days>(local);
  const hh_mm_ss<seconds> clock(local - day);
  const bool is_today = day == floor<days>(moment.now + moment.zone);
  std::array<char, 32> text{};
  const auto hour = static_cast<int>(clock.hours().count());
  const auto minute = static_cast<int>(clock.minutes().count());
  const year_month_day date(day);
  const int length =
      is_today ? std::snprintf(text.data(), text.size(), "%02d:%02d:%02d", hour, minute,
                               static_cast<int>(clock.seconds().count()))
               : std::snprintf(text.data(), text.size(), "%02u-%02u %02d:%02d", static_cast<unsigned>(date.month()),
                               static_cast<unsigned>(date.day()), hour, minute);
  return {text.data(), static_cast<std::size_t>(length)};
}

Screenful lay_out(const Board& board, const View& view, const Link& link, const Moment& moment, ScreenSize size) {
  if (size.rows == 0 || size.columns == 0) return {};
  Screenful out = view.page() == View::Page::help   ? help_screen(size)
                  : view.page() == View::Page::task ? task_screen(board, view, link, moment, size)
                                                    : list_screen(board, view, link, moment, size);
  const std::size_t body = size.rows > 1 ? size.rows - 1 : 1;
  out.frame.resize(body);
  if (size.rows > 1) out.frame.push_back(foot(board, view, size.columns));
  return out;
}

}  // namespace duet::app::top
