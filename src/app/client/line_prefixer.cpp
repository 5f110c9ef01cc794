#include "app/client/line_prefixer.h"

#include <algorithm>
#include <utility>

namespace duet::app {

LinePrefixer::LinePrefixer(const std::vector<std::string>& ids, const TextStyle& style, Print print)
    : print_(std::move(print)) {
  std::size_t width = 0;
  for (const std::string& id : ids) width = std::max(width, id.size());
  for (const std::string& id : ids) {
    const std::string padding(width - id.size(), ' ');
    sources_.push_back({.id = id, .prefix = style.nth(sources_.size(), id + padding + " |") + " ", .line = {}});
  }
}

void LinePrefixer::take(const std::string& id, std::string_view bytes) {
  Source& source = *std::ranges::find(sources_, id, &Source::id);
  while (!bytes.empty()) {
    const std::size_t room = longest_line - source.line.size();
    const std::size_t end = bytes.substr(0, room).find('\n');
    const std::string_view piece = bytes.substr(0, std::min(end, room));
    source.line += piece;
    bytes.remove_prefix(piece.size() + (end == std::string_view::npos ? 0 : 1));
    if (end != std::string_view::npos || source.line.size() == longest_line) print_line(source);
  }
}

void LinePrefixer::finish() {
  for (Source& source : sources_) {
    if (!source.line.empty()) print_line(source);
  }
}

void LinePrefixer::print_line(Source& source) {
  print_(source.prefix + source.line + '\n');
  source.line.clear();
}

}  // namespace duet::app
