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
    : tasks_(tasks), run_(run), record_(record), capacity_(limit) {}

void OutputFile::append(std::string_view bytes) {
  if (!wrapped_) bytes.remove_prefix(append_in_order(bytes));
  if (!bytes.empty()) append_to_ring(bytes);
}

std::size_t OutputFile::append_in_order(std::string_view bytes) {
  if (!file_) {
    file_.reset(openat(tasks_, output_name(run_).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  }
  const std::size_t room = std::min(bytes.size(), static_cast<std::size_t>(capacity_ - total_));
  const std::size_t written = write_at(file_.get(), bytes.substr(0, room), total_);
  total_ += written;
  if (written == bytes.size()) return written;
  capacity_ = total_;
  tail_ = capacity_ / 2;
  wrapped_ = true;
  return written;
}

void OutputFile::append_to_ring(std::string_view bytes) {
  const std::uint64_t ring = capacity_ - capacity_ / 2;
  const std::uint64_t end = total_ + bytes.size();
  const std::uint64_t tail = std::max(tail_, end - ring);
  const std::string_view kept = bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), ring));
  const bool written = !kept.empty() && note(std::min(tail, total_), total_) && write_ring(end - kept.size(), kept);
  total_ = end;
  tail_ = written ? tail : end;
  note(tail_, total_);
}

bool OutputFile::write_ring(std::uint64_t offset, std::string_view bytes) {
  const Extent extent{.capacity = capacity_};
  const std::uint64_t place = extent.position(offset);
  const std::string_view first = bytes.substr(0, capacity_ - place);
  const std::string_view second = bytes.substr(first.size());
  return write_at(file_.get(), first, place) == first.size() &&
         write_at(file_.get(), second, extent.head()) == second.size();
}

bool OutputFile::note(std::uint64_t tail, std::uint64_t total) {
  return record_.write_extent({.capacity = capacity_, .tail = tail, .total = total}, ++sequence_);
}

}  // namespace duet::task
