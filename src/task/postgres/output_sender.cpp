#include "task/postgres/output_sender.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "task/output.h"
#include "task/output_marks.h"

namespace duet::task::postgres {

std::int64_t OutputBudget::left(base::TimePoint now) {
  if (at_ != base::TimePoint()) {
    const double seconds = std::chrono::duration<double>(now - at_).count();
    const auto more = static_cast<std::int64_t>(std::max(seconds, 0.0) * static_cast<double>(rate_));
    left_ = std::min(left_ + more, 10 * rate_);
  }
  at_ = now;
  return left_;
}

std::uint64_t OutputSender::Portion::size() const {
  std::uint64_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.bytes.size();
  return bytes;
}

// The head as it comes; behind it only what may stay to the end.
OutputSender::Portion OutputSender::next(std::uint64_t most, bool is_last) {
  Portion portion{.last = is_last};
  std::uint64_t at = sent_;
  std::uint64_t used = 0;
  portion.total = read_output(tasks_, run_, UINT64_MAX, 0).total;  // what is written meanwhile is for the next one
  const std::uint64_t tail_from = portion.total > tail() ? portion.total - tail() : 0;
  while (true) {
    if (at >= head()) at = std::max(at, tail_from);
    const std::uint64_t end = at < head() ? std::min(portion.total, head()) : portion.total;
    if (at >= end) break;
    if (!is_last && used >= most) break;
    OutputPiece read = read_output(tasks_, run_, at, std::min<std::uint64_t>(end - at, largest_piece));
    if (read.bytes.empty() && read.next <= at) break;
    const std::string marks = marks_of(tasks_, run_, read.offset, read.bytes.size());
    used += read.bytes.size();
    at = std::max(read.next, at);
    if (!read.bytes.empty()) portion.pieces.push_back({read.offset, std::move(read.bytes), marks});
  }
  asked_ = at;
  portion.total = std::max(portion.total, at);
  if (tail_from > head()) portion.dropped.push_back({head(), tail_from});
  for (const OutputRange& gap : dropped_output(tasks_, run_)) {
    if (portion.dropped.empty() || gap.from < portion.dropped.front().from || gap.to > portion.dropped.front().to) {
      portion.dropped.push_back(gap);
    }
  }
  if (portion.total < furthest_) {  // the file was removed when all of it had arrived
    portion.dropped.push_back({at, furthest_});
    portion.total = asked_ = furthest_;
  }
  dropped_ = portion.dropped;
  return portion;
}

OutputSender::Portion OutputSender::unreadable(std::uint64_t total) {
  Portion portion{.total = std::max({total, sent_, furthest_}), .dropped = dropped_, .last = true};
  if (portion.total > sent_) portion.dropped.push_back({sent_, portion.total});
  asked_ = portion.total;
  return portion;
}

std::uint64_t OutputSender::left() const {
  const std::uint64_t total = read_output(tasks_, run_, UINT64_MAX, 0).total;
  const std::uint64_t tail_from = std::max(total > tail() ? total - tail() : 0, head());
  const std::uint64_t of_head = std::min(total, head()) - std::min(std::min(total, head()), sent_);
  const std::uint64_t of_tail = total > std::max(tail_from, sent_) ? total - std::max(tail_from, sent_) : 0;
  return of_head + of_tail;
}

std::string marks_of(int tasks, RunId run, std::uint64_t offset, std::size_t size) {
  constexpr std::string_view letters = "oem";
  const MarkedStreams marks(tasks, run);
  std::string text;
  for (std::uint64_t at = offset; at < offset + size;) {
    const MarkedStreams::Stretch stretch = marks.at(at);
    text += std::to_string(at - offset) + letters.at(static_cast<std::size_t>(stretch.stream));
    if (stretch.to <= at) break;
    at = stretch.to;
  }
  return text == "0o" ? std::string() : text;
}

}  // namespace duet::task::postgres
