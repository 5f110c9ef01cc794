#include "duet/framing/lines.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace duet::framing {
namespace {

bool is_blank(std::string_view line) {
  if (!line.empty() && line.front() > ' ') return false;
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

// There is one object to return, so that it is built in place: copying a frame just written costs
// more than finding it, because the processor waits for the parts to reach memory.
std::optional<Frame> LineDecoder::next() {
  std::optional<Frame> frame;
  in_.drop(used_);
  used_ = 0;
  if (in_.empty()) return frame;
  while (!frame) {
    const std::string_view view = in_.view();
    const std::size_t newline = find_newline(view, scanned_);
    if (newline == std::string_view::npos) {
      if (partial_line_is_oversize(view)) frame.emplace().fault = Fault::oversize;
      break;
    }
    scanned_ = 0;
    ++lines_;
    std::string_view line(view.data(), newline);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool skipped = std::exchange(skipping_, false);
    const bool oversize = !skipped && line.size() > max_line_;
    if (skipped || oversize || is_blank(line)) {
      in_.drop(newline + 1);
      if (oversize) {
        oversize_bytes_ = line.size();
        frame.emplace().fault = Fault::oversize;
      }
    } else {
      used_ = newline + 1;
      frame.emplace().body = line;
    }
  }
  return frame;
}

// Keeps what may become a line, or skips what is too long for one. True when that is news.
bool LineDecoder::partial_line_is_oversize(std::string_view view) {
  const bool oversize = !skipping_ && too_long(view);
  if (oversize) oversize_bytes_ = view.size();
  skipping_ = skipping_ || oversize;
  if (skipping_) in_.drop(view.size());
  scanned_ = skipping_ ? 0 : view.size();
  in_.keep();
  return oversize;
}

bool LineDecoder::too_long(std::string_view partial) const {
  return partial.size() > max_line_ + 1 || (partial.size() == max_line_ + 1 && !partial.ends_with('\r'));
}

void LineDecoder::drop_partial() {
  if (!inside_frame()) return;
  skipping_ = true;
  scanned_ = used_ = 0;
  in_.drop(in_.view().size());
}

std::size_t LineEncoder::end(char* at, std::span<char> payload) {
  // In valid JSON a raw newline can only be white space between tokens.
  constexpr std::size_t small = 8;  // for so few bytes a call of memchr costs more
  if (payload.size() <= small) {
    std::replace(payload.begin(), payload.end(), '\n', ' ');
  } else {
    const std::string_view text(payload.data(), payload.size());
    for (std::size_t i = find_newline(text, 0); i != std::string_view::npos; i = find_newline(text, i + 1))
      payload[i] = ' ';
  }
  *at = '\n';
  return 1;
}

}  // namespace duet::framing
