// Line framing: however the bytes arrive, the messages are what splitting the whole text at its newlines gives.

#include "duet/framing/lines.h"

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "duet/framing/stream_driver_test.h"
#include "require.h"

namespace {

using duet::framing::LineDecoder;
using Events = std::vector<std::string>;

constexpr std::size_t max_line = 40;

bool accepts(std::string_view body) { return body.find('!') == std::string_view::npos; }

Events expected_events(std::string_view text) {
  Events events;
  for (;;) {
    const std::size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    const bool whole = newline != std::string_view::npos;
    if (whole && line.ends_with('\r')) line.remove_suffix(1);
    const bool may_still_end = !whole && line.size() == max_line + 1 && line.ends_with('\r');
    if (line.size() > max_line && !may_still_end) {
      events.emplace_back("! oversize");
    } else if (whole && line.find_first_not_of(" \t\r") != std::string_view::npos) {
      events.emplace_back(accepts(line) ? line : "! invalid-json");
    }
    if (!whole) return events;
    text.remove_prefix(newline + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::minstd_rand random(data[0]);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Events expected = expected_events(text);
  for (const std::size_t largest : {text.size() + 1, std::size_t{1}, std::size_t{1} + data[0]}) {
    LineDecoder decoder(max_line);
    duet::framing::StreamDriver driver(decoder, accepts);
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t count =
          std::min<std::size_t>(rest.size(), largest > text.size() ? largest : 1 + random() % largest);
      random() % 2 == 0 ? driver.feed(rest.substr(0, count)) : driver.read(rest.substr(0, count));
      rest.remove_prefix(count);
    }
    driver.finish();
    require(driver.events() == expected, "the lines are those of the whole text");
    require(driver.most_held() <= max_line + 1, "no more than a line is held");
  }
  return 0;
}
