#include "task/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace duet::task {
namespace {

// How many of the bytes were written.
std::size_t write_at(int fd, std::string_view bytes, std::uint64_t place) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(place + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    done += static_cast<std::size_t>(count);
  }
  return done;
}

}  // namespace

OutputFile::OutputFile(int tasks, RunId run, const RunRecord& record, std::uint64_t limit)
    : tasks_(tasks), run_(run), record_(record), extent_{.capacity = limit}, marks_(tasks, run) {}

// In parts that lie in the file in at most two pieces, and of which none overwrites another.
void OutputFile::append(std::string_view bytes, Stream stream) {
  const bool is_marked = bytes.empty() || marks_.mark(extent_.total, stream) == 0;
  while (!bytes.empty()) {
    const std::uint64_t in_order = extent_.capacity - std::min(extent_.total, extent_.capacity);
    const std::string_view part = bytes.substr(0, in_order > 0 ? in_order : extent_.ring());
    append_part(part, is_marked);
    bytes.remove_prefix(part.size());
  }
}

void OutputFile::append_part(std::string_view bytes, bool is_marked) {
  const std::uint64_t from = extent_.total;
  const std::uint64_t to = from + bytes.size();
  if (to > extent_.capacity) {
    extent_.drop({extent_.head(), to - extent_.ring()});
    is_noted_ = false;
  }
  const std::size_t written = is_marked && note() == 0 ? write_part(bytes) : 0;
  extent_.drop({from + written, to});
  extent_.total = to;
  is_noted_ = extent_.gaps.empty();
  note();
}

std::size_t OutputFile::write_part(std::string_view bytes) {
  if (!open_file()) return 0;
  is_synced_ = false;
  const std::uint64_t place = extent_.position(extent_.total);
  const std::string_view first = bytes.substr(0, extent_.capacity - place);
  const std::size_t written = write_at(file_.get(), first, place);
  if (written < first.size()) return written;
  return written + write_at(file_.get(), bytes.substr(first.size()), extent_.head());
}

bool OutputFile::open_file() {
  if (file_) return true;
  file_.reset(openat(tasks_, output_name(run_).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  return static_cast<bool>(file_);
}

int OutputFile::note() {
  if (is_noted_) return 0;
  if (!record_.write_extent(extent_, ++sequence_)) return errno;
  is_noted_ = true;
  is_synced_ = false;
  return 0;
}

int OutputFile::sync() {
  if (is_synced_) return 0;
  if (file_ && fdatasync(file_.get()) != 0) return errno;
  if (const int error = marks_.sync(); error != 0) return error;
  if (!extent_.gaps.empty() && fdatasync(record_.get()) != 0) return errno;
  if (file_ && !is_named_ && fsync(tasks_) != 0) return errno;
  is_named_ = is_synced_ = true;
  return 0;
}

}  // namespace duet::task
