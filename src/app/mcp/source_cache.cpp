#include "app/mcp/source_cache.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace duet::app::mcp {

std::shared_ptr<SourceCache::Source> SourceCache::find(const std::string& path) {
  const auto found = std::ranges::find_if(sources_, [&](const auto& source) { return source->path == path; });
  if (found != sources_.end()) {
    if ((*found)->stamp.still_holds(path)) {
      sources_.splice(sources_.begin(), sources_, found);
      return sources_.front();
    }
    sources_.erase(found);
  }
  std::optional<bridge::SourceFile> file = bridge::read_source_file(path);
  if (!file) return nullptr;
  const bool is_kept = file->bytes.size() <= most_bytes;
  auto source = std::make_shared<Source>(Source{path, file->stamp, bridge::Text(std::move(file->bytes))});
  if (is_kept) sources_.push_front(source);
  if (sources_.size() > most_files) sources_.pop_back();
  return source;
}

bool SourceCache::is_unchanged(const std::shared_ptr<Source>& source) {
  if (!source) return true;
  const std::shared_ptr<Source> now = find(source->path);
  return now && (now == source || now->text.str() == source->text.str());
}

std::string lines_of(const bridge::Text& text, std::size_t first, std::size_t last) {
  std::string lines;
  for (std::size_t line = std::max<std::size_t>(first, 1); line <= std::min(last, text.line_count()); ++line) {
    if (!lines.empty() || line > first) lines += '\n';
    lines += text.line(line - 1);
  }
  return lines;
}

}  // namespace duet::app::mcp
