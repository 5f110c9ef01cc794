#include "app/client/line_prefixer.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "duet/base/blocked_signals.h"

namespace duet::app {
namespace {

// For a handler, which may do little else.
void write_from_handler(int file, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t count = write(file, text.data(), text.size());
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

LinePrefixer::LinePrefixer(const std::vector<std::string>& ids, const TextStyle& style, Print print)
    : print_(std::move(print)) {
  std::size_t width = 0;
  for (const std::string& id : ids) width = std::max(width, id.size());
  for (const std::string& id : ids) {
    const std::string padding(width - id.size(), ' ');
    sources_.push_back({.id = id, .prefix = style.nth(sources_.size(), id + padding + " |") + " ", .line = {}});
  }
}

// What is left is in its place before anything is printed: from then on a ^C finds it. Printing itself may take long,
// and can be interrupted.
void LinePrefixer::take(const std::string& id, std::string_view bytes) {
  const std::string whole = take_whole_lines(*std::ranges::find(sources_, id, &Source::id), bytes);
  if (!whole.empty()) print_(whole);
}

std::string LinePrefixer::take_whole_lines(Source& source, std::string_view bytes) {
  const base::BlockedSignals uninterrupted;
  std::string whole;
  while (!bytes.empty()) {
    const std::size_t room = longest_line - source.line.size();
    const std::size_t end = bytes.substr(0, room).find('\n');
    const std::string_view piece = bytes.substr(0, std::min(end, room));
    source.line += piece;
    bytes.remove_prefix(piece.size() + (end == std::string_view::npos ? 0 : 1));
    if (end != std::string_view::npos || source.line.size() == longest_line) cut_line(source, whole);
  }
  return whole;
}

void LinePrefixer::finish() {
  std::string rest;
  {
    const base::BlockedSignals uninterrupted;
    for (Source& source : sources_) {
      if (!source.line.empty()) cut_line(source, rest);
    }
  }
  if (!rest.empty()) print_(rest);
}

void LinePrefixer::cut_line(Source& source, std::string& whole) {
  whole.append(source.prefix).append(source.line) += '\n';
  source.line.clear();
}

void LinePrefixer::write_unfinished(int file) const noexcept {
  for (const Source& source : sources_) {
    if (source.line.empty()) continue;
    write_from_handler(file, source.prefix);
    write_from_handler(file, source.line);
    write_from_handler(file, "\n");
  }
}

}  // namespace duet::app
