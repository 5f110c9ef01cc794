#include "task/output_marks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <system_error>

#include "task/run_record.h"

namespace duet::task {
namespace {

constexpr unsigned stream_bits = 2;
constexpr std::uint64_t nowhere = std::numeric_limits<std::uint64_t>::max();

std::uint64_t packed(std::uint64_t offset, Stream stream) {
  return offset << stream_bits | static_cast<std::uint64_t>(stream);
}

}  // namespace

std::string_view name_of(Stream stream) {
  if (stream == Stream::mixed) return {};
  return stream == Stream::out ? "stdout" : "stderr";
}

std::string marks_name(RunId run) { return record_name(run) + ".marks"; }

int OutputMarks::mark(std::uint64_t offset, Stream stream) {
  if (stream == last_ || last_ == Stream::mixed) return 0;
  const Stream next = written_ + 1 < most_ ? stream : Stream::mixed;
  const int error = write(packed(offset, next));
  if (error == 0) last_ = next;
  return error;
}

// A part of one is no mark, and is overwritten by the next.
int OutputMarks::write(std::uint64_t mark) {
  constexpr int how = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
  if (!file_) file_.reset(openat(tasks_, marks_name(run_).c_str(), how, 0600));
  if (!file_) return errno;
  const ssize_t count = pwrite(file_.get(), &mark, sizeof mark, static_cast<off_t>(written_ * sizeof mark));
  if (count < 0) return errno;
  if (count != sizeof mark) return ENOSPC;
  ++written_;
  return 0;
}

int OutputMarks::sync() { return file_ && fdatasync(file_.get()) != 0 ? errno : 0; }

MarkedStreams::MarkedStreams(int tasks, RunId run)
    : file_(openat(tasks, marks_name(run).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {
  if (!file_ && errno != ENOENT) throw std::system_error(errno, std::generic_category(), "open the marks of an output");
  if (!file_) return;
  struct stat status {};
  base::check_call(fstat(file_.get(), &status), "fstat");
  count_ = static_cast<std::size_t>(status.st_size) / sizeof(std::uint64_t);
}

// No mark is 0: that is what a power cut leaves of those that were not synced, at the end.
std::uint64_t MarkedStreams::mark(std::size_t index) const {
  std::uint64_t mark = 0;
  const ssize_t count = pread(file_.get(), &mark, sizeof mark, static_cast<off_t>(index * sizeof mark));
  if (count < 0) throw std::system_error(errno, std::generic_category(), "read the marks of an output");
  return count == sizeof mark && mark != 0 ? mark : nowhere;
}

MarkedStreams::Stretch MarkedStreams::at(std::uint64_t offset) const {
  std::size_t behind = count_;  // the first mark behind the offset is there, or before
  std::size_t first = 0;
  while (first < behind) {
    const std::size_t middle = first + (behind - first) / 2;
    if (mark(middle) >> stream_bits <= offset) {
      first = middle + 1;
    } else {
      behind = middle;
    }
  }
  Stretch stretch{.to = first < count_ ? mark(first) >> stream_bits : nowhere};
  if (first > 0) stretch.stream = static_cast<Stream>(mark(first - 1) & 3U);
  return stretch;
}

}  // namespace duet::task
