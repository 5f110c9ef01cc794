#include "app/top/frame.h"

#include <algorithm>
#include <utility>

#include "app/view/display_text.h"
#include "duet/rpc/utf8.h"

namespace duet::app::top {
namespace {

constexpr std::size_t gap = 2;  // columns between cells

}  // namespace

std::string Line::text() const {
  std::string out;
  for (const Span& span : spans) out += span.text;
  return out;
}

LineWriter& LineWriter::add(std::string_view text, Paint paint) {
  std::string cut = cut_to_width(text, left_);
  if (cut.empty()) return *this;
  left_ -= display_width(cut);
  line_.spans.push_back({std::move(cut), paint});
  return *this;
}

LineWriter& LineWriter::cell(std::string_view text, std::size_t width, Paint paint) {
  const std::string cut = cut_to_width(text, width);
  add(cut, paint);
  return fill(width - display_width(cut) + gap);
}

LineWriter& LineWriter::number(std::string_view text, std::size_t width, Paint paint) {
  const std::string cut = cut_to_width(text, width);
  fill(width - display_width(cut)).add(cut, paint);
  return fill(gap);
}

LineWriter& LineWriter::right(std::string_view text, Paint paint) {
  const std::size_t width = display_width(text);
  if (width + gap > left_) return *this;
  return fill(left_ - width).add(text, paint);
}

LineWriter& LineWriter::fill(std::size_t columns) { return add(std::string(std::min(columns, left_), ' ')); }

Line LineWriter::take(bool chosen) {
  line_.chosen = chosen;
  return std::exchange(line_, {});
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (std::size_t used = 0; !text.empty();) {
    const std::size_t bytes = std::max<std::size_t>(rpc::utf8_length(text.data(), text.data() + text.size()), 1);
    const std::string_view character = text.substr(0, bytes);
    const std::size_t columns = display_width(character);
    if (used + columns > width && !lines.back().empty()) {
      lines.emplace_back();
      used = 0;
    }
    if (columns <= width) lines.back() += character;
    used += columns;
    text.remove_prefix(bytes);
  }
  return lines;
}

std::vector<std::string> wrapped_words(std::string_view text, std::size_t width) {
  if (width < 2) return wrapped(text, width);  // a wide character would have no room
  std::vector<std::string> lines;
  for (;;) {
    std::vector<std::string> cut = wrapped(text, width);
    std::string& first = cut.front();
    const std::size_t blank = cut.size() == 1 ? std::string::npos : first.rfind(' ');
    if (blank != std::string::npos && blank > 0 && text[first.size()] != ' ') first.resize(blank);
    text.remove_prefix(first.size());
    lines.push_back(std::move(first));
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    if (text.empty()) return lines;
  }
}

}  // namespace duet::app::top
