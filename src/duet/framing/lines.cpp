#include "duet/framing/lines.h"

#include <algorithm>
#include <cstring>

namespace duet::framing {
namespace {

std::size_t find_newline(std::string_view text, std::size_t from) {
  const void* hit = from < text.size() ? std::memchr(text.data() + from, '\n', text.size() - from) : nullptr;
  return hit == nullptr ? std::string_view::npos
                        : static_cast<std::size_t>(static_cast<const char*>(hit) - text.data());
}

bool is_blank(std::string_view line) {
  if (!line.empty() && line.front() > ' ') return false;
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

std::optional<Frame> LineDecoder::next() {
  in_.drop(used_);
  used_ = 0;
  for (;;) {
    const std::string_view view = in_.view();
    const std::size_t newline = find_newline(view, scanned_);
    if (newline != std::string_view::npos) {
      if (auto frame = whole_line(newline)) return frame;
      continue;
    }
    if (skipping_) {
      in_.drop(view.size());
      scanned_ = 0;
    } else if (too_long(view)) {
      skipping_ = true;
      in_.drop(view.size());
      scanned_ = 0;
      return Frame{{}, Fault::oversize};
    } else {
      scanned_ = view.size();
    }
    in_.keep();
    return std::nullopt;
  }
}

// nullopt: nothing to hand out, the line is gone.
std::optional<Frame> LineDecoder::whole_line(std::size_t length) {
  std::string_view line = in_.view().substr(0, length);
  scanned_ = 0;
  ++lines_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  const bool was_skipping = skipping_;
  skipping_ = false;
  const bool oversize = !was_skipping && line.size() > max_line_;
  if (was_skipping || oversize || is_blank(line)) {
    in_.drop(length + 1);
    if (oversize) return Frame{{}, Fault::oversize};
    return std::nullopt;
  }
  used_ = length + 1;
  return Frame{line, std::nullopt};
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
    for (std::size_t i = find_newline(text, 0); i != std::string_view::npos; i = find_newline(text, i + 1)) payload[i] = ' ';
  }
  *at = '\n';
  return 1;
}

}  // namespace duet::framing
