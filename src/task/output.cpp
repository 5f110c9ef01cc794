#include "task/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "duet/base/fd.h"
#include "task/run_record.h"

namespace duet::task {
namespace {

constexpr int max_read_tries = 100;
constexpr int most_stretches = 1024;  // that are looked at for one answer

base::Fd open_output(int tasks, RunId run) {
  base::Fd file(openat(tasks, output_name(run).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno != ENOENT) throw std::system_error(errno, std::generic_category(), "open the output");
  return file;
}

// Without it the gaps would be taken for output.
RunRecord open_record(int tasks, RunId run) {
  RunRecord record = RunRecord::open_to_read(tasks, run);
  if (!record && errno != ENOENT) throw std::system_error(errno, std::generic_category(), "open the record of a run");
  return record;
}

// Where the bytes of an output are.
class Layout {
 public:
  Layout(std::optional<Extent> extent, int file) : extent_(std::move(extent)) {
    if (extent_ || file < 0) return;
    struct stat status {};
    base::check_call(fstat(file, &status), "fstat");
    size_ = static_cast<std::uint64_t>(status.st_size);
  }

  std::uint64_t total() const { return extent_ ? extent_->total : size_; }
  std::vector<OutputRange> gaps() const { return extent_ ? extent_->gaps : std::vector<OutputRange>(); }

  /// The first gap that ends behind `offset`.
  std::optional<OutputRange> next_gap(std::uint64_t offset) const {
    for (const OutputRange& gap : gaps()) {
      if (gap.to > offset) return gap;
    }
    return std::nullopt;
  }

  /// Where the byte at `offset` is in the file, and how many follow it there in order.
  OutputRange stretch(std::uint64_t offset) const {
    if (!extent_) return {offset, size_};
    if (offset < extent_->head()) return {offset, extent_->head()};
    const std::uint64_t place = extent_->position(offset);
    return {place, std::min(extent_->capacity, place + extent_->total - offset)};
  }

 private:
  std::optional<Extent> extent_;
  std::uint64_t size_ = 0;
};

void append_from(int file, OutputRange range, std::string& bytes) {
  const std::size_t before = bytes.size();
  bytes.resize(before + static_cast<std::size_t>(range.to - range.from));
  while (range.from < range.to) {
    char* into = bytes.data() + bytes.size() - (range.to - range.from);
    const ssize_t count = pread(file, into, range.to - range.from, static_cast<off_t>(range.from));
    if (count < 0 && errno == EINTR) continue;
    base::check_call(static_cast<int>(std::min<ssize_t>(count, 1)), "read the output");
    if (count == 0) break;
    range.from += static_cast<std::uint64_t>(count);
  }
  bytes.resize(bytes.size() - static_cast<std::size_t>(range.to - range.from));
}

OutputPiece read_piece(const Layout& layout, int file, std::uint64_t offset, std::size_t limit) {
  OutputPiece piece;
  piece.total = layout.total();
  piece.offset = std::min(offset, piece.total);
  auto gap = layout.next_gap(piece.offset);
  if (gap && gap->from <= piece.offset) {
    piece.offset = gap->to;
    piece.dropped = gap;
    gap = layout.next_gap(piece.offset);
  }
  piece.next = piece.offset;
  const std::uint64_t end = gap ? gap->from : piece.total;
  while (piece.next < end && piece.bytes.size() < limit) {
    const OutputRange stretch = layout.stretch(piece.next);
    const std::uint64_t there = std::min(stretch.to - stretch.from, end - piece.next);
    const std::uint64_t wanted = std::min<std::uint64_t>(there, limit - piece.bytes.size());
    const std::size_t before = piece.bytes.size();
    if (file >= 0) append_from(file, {stretch.from, stretch.from + wanted}, piece.bytes);
    const bool is_lost = piece.bytes.size() == before;  // a power cut has left what the record tells, and not the bytes
    if (is_lost && !piece.bytes.empty()) break;
    if (is_lost) {
      const std::uint64_t behind = piece.offset + there;
      piece.dropped = OutputRange{piece.dropped ? piece.dropped->from : piece.offset, behind};
      piece.offset = behind;
      piece.next = behind;
    } else {
      piece.next += piece.bytes.size() - before;
    }
  }
  return piece;
}

// Takes away what was overwritten while it was read; false if nothing of it is left.
bool trim(OutputPiece& piece, const Layout& now) {
  const auto gap = now.next_gap(piece.offset);
  if (!gap || piece.next <= gap->from || piece.bytes.empty()) return true;
  if (piece.offset < gap->from) {
    piece.bytes.resize(static_cast<std::size_t>(gap->from - piece.offset));
    piece.next = gap->from;
    return true;
  }
  if (gap->to >= piece.next) return false;
  piece.bytes.erase(0, static_cast<std::size_t>(gap->to - piece.offset));
  piece.offset = gap->to;
  piece.dropped = gap;
  return trim(piece, now);
}

// What is read of bytes that nobody wants: where they end, or the gap that they go on behind.
OutputPiece skipped(const std::vector<OutputRange>& gaps, OutputRange range) {
  const auto gap = std::ranges::find_if(gaps, [&](const OutputRange& each) { return each.to > range.from; });
  if (gap == gaps.end() || gap->from >= range.to) return {.offset = range.to, .next = range.to};
  return {.offset = gap->to, .next = gap->to, .dropped = *gap};
}

}  // namespace

OutputPiece read_output(int tasks, RunId run, std::uint64_t offset, std::size_t limit) {
  const RunRecord record = open_record(tasks, run);
  const auto extent = [&] { return record ? record.read_extent() : std::nullopt; };
  std::optional<Extent> before = extent();
  base::Fd file = open_output(tasks, run);  // after that: what an extent tells of is there
  for (int tries = 0; tries < max_read_tries; ++tries) {
    OutputPiece piece = read_piece(Layout(before, file.get()), file.get(), offset, limit);
    if (trim(piece, Layout(extent(), file.get()))) return piece;
    before = extent();
    if (!file) file = open_output(tasks, run);
  }
  return read_piece(Layout(before, file.get()), file.get(), offset, 0);
}

std::uint64_t OutputPiece::place_of(std::size_t byte) const {
  if (byte >= bytes.size()) return next;
  std::uint64_t left = byte;
  for (const OutputRange& part : parts) {
    if (left < part.to - part.from) return part.from + left;
    left -= part.to - part.from;
  }
  return offset + byte;
}

OutputPiece read_stream(int tasks, RunId run, Stream stream, std::uint64_t offset, std::size_t limit) {
  OutputPiece all = read_output(tasks, run, offset, 0);  // what there is now is marked by now
  all.dropped.reset();
  const std::vector<OutputRange> gaps = dropped_output(tasks, run);
  const MarkedStreams streams(tasks, run);
  std::uint64_t at = std::min(offset, all.total);
  for (int looks = 0; looks < most_stretches && at < all.total && all.bytes.size() < limit; ++looks) {
    const MarkedStreams::Stretch stretch = streams.at(at);
    const std::uint64_t end = std::min(stretch.to, all.total);
    const bool is_wanted = stretch.stream == stream || stretch.stream == Stream::mixed;
    OutputPiece piece = is_wanted
                            ? read_output(tasks, run, at, std::min<std::uint64_t>(limit - all.bytes.size(), end - at))
                            : skipped(gaps, {at, end});
    if (piece.dropped && (all.dropped || !all.bytes.empty())) break;  // which the next read tells
    if (piece.dropped) all.dropped = piece.dropped;
    const bool is_moved = piece.offset != at;  // what follows the gap may come from the other one
    at = is_moved ? piece.offset : piece.next;
    if (is_moved) continue;
    if (piece.bytes.empty()) break;
    all.parts.push_back({piece.offset, piece.next});
    all.bytes += piece.bytes;
  }
  all.next = at;
  all.offset = all.parts.empty() ? at : all.parts.front().from;
  return all;
}

std::string end_of_output(int tasks, RunId run, std::size_t size) {
  const std::uint64_t total = read_output(tasks, run, 0, 0).total;
  std::string end;
  for (std::uint64_t at = total - std::min<std::uint64_t>(total, size); at < total;) {
    const OutputPiece piece = read_output(tasks, run, at, static_cast<std::size_t>(total - at));
    if (piece.next <= at) break;
    if (piece.dropped && !end.empty()) end += '\n';
    end += piece.bytes;
    at = piece.next;
  }
  return end;
}

std::vector<OutputRange> dropped_output(int tasks, RunId run) {
  const RunRecord record = open_record(tasks, run);
  return Layout(record ? record.read_extent() : std::nullopt, -1).gaps();
}

std::uint64_t output_size(int tasks, RunId run) {
  std::uint64_t size = 0;
  for (const std::string& name : {output_name(run), marks_name(run)}) {
    struct stat status {};
    if (fstatat(tasks, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
      size += static_cast<std::uint64_t>(status.st_size);
    }
  }
  return size;
}

// The output is what is looked for later, should somebody be killed between the two.
void remove_output(int tasks, RunId run) {
  unlinkat(tasks, marks_name(run).c_str(), 0);
  unlinkat(tasks, record_name(run).c_str(), 0);
  unlinkat(tasks, output_name(run).c_str(), 0);
}

}  // namespace duet::task
