#include "app/log/fallback_sink.h"

#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>

namespace duet::app {
namespace {

// Of lines of which the first `written` bytes are in the file: those that are not there whole.
std::string_view not_written(std::string_view lines, std::size_t written) {
  const std::size_t last_end = written == 0 ? std::string_view::npos : lines.rfind('\n', written - 1);
  return last_end == std::string_view::npos ? lines : lines.substr(last_end + 1);
}

}  // namespace

std::size_t FallbackSink::write(std::string_view lines) {
  const std::size_t written = file_->write(lines);
  if (written == lines.size()) return written;
  bool done = complain(errno);
  for (std::string_view rest = not_written(lines, written); done && !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n') + 1);
    if (base::level_of_line(line) >= least_) done = fallback_->write(line) == line.size();
    rest.remove_prefix(line.size());
  }
  return done ? lines.size() : written;
}

bool FallbackSink::complain(int error) {
  if (complained_) return true;
  std::string line;
  base::LineFormat(fallback_->coloured())
      .append(line, std::chrono::system_clock::now(), base::Level::warn, file_complaint,
              {{"reason", std::generic_category().message(error)}});
  complained_ = fallback_->write(line) == line.size();
  return complained_;
}

}  // namespace duet::app
