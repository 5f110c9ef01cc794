#include "task/postgres/output_view.h"

#include <algorithm>
#include <charconv>

#include <boost/json/array.hpp>

#include "task/postgres/records.h"

namespace duet::task::postgres {
namespace {

namespace json = boost::json;

// A stretch of a piece that comes from one stream, by `0o12e40o`; without marks all of it is stdout.
struct Stretch {
  std::size_t from = 0;
  Stream stream = Stream::out;
};

std::vector<Stretch> stretches_of(std::string_view marks) {
  std::vector<Stretch> list;
  while (!marks.empty()) {
    std::size_t from = 0;
    const auto [end, fault] = std::from_chars(marks.data(), marks.data() + marks.size(), from);
    const std::size_t digits = static_cast<std::size_t>(end - marks.data());
    if (fault != std::errc{} || digits >= marks.size()) break;
    const char letter = marks[digits];
    list.push_back({from, letter == 'e' ? Stream::err : letter == 'm' ? Stream::mixed : Stream::out});
    marks.remove_prefix(digits + 1);
  }
  if (list.empty()) list.push_back({});
  return list;
}

}  // namespace

OutputView::OutputView(const json::object& state) {
  for (const json::value& value : array_in(state, "attempts")) {
    const json::object& told = value.as_object();
    Attempt& attempt = attempts_.emplace_back();
    attempt.number = static_cast<std::uint32_t>(number_in(told, "attempt"));
    attempt.begin = total_;
    attempt.total = static_cast<std::uint64_t>(number_in(told, "total"));
    for (const json::value& range : array_in(told, "dropped")) {
      attempt.dropped.push_back(
          {total_ + range.at(0).to_number<std::uint64_t>(), total_ + range.at(1).to_number<std::uint64_t>()});
    }
    if (flag_in(told, "gone")) attempt.dropped = {{total_, total_ + attempt.total}};
    total_ += attempt.total;
  }
  is_over_ = has_ended(static_cast<State>(number_in(state, "state")));
}

// What an attempt wrote that is over, and that its worker did not live to send, is not there: to the end of it.
std::uint64_t OutputView::end_of_lost(std::uint64_t offset) const {
  for (const Attempt& attempt : attempts_) {
    const bool is_over = is_over_ || &attempt != &attempts_.back();
    if (is_over && attempt.begin <= offset && offset < attempt.begin + attempt.total)
      return attempt.begin + attempt.total;
  }
  return offset;
}

// Nothing is there of one that has not told anything yet.
std::uint64_t OutputView::begin_of(std::uint32_t attempt) const {
  const auto found = std::ranges::find(attempts_, attempt, &Attempt::number);
  return found == attempts_.end() ? total_ : found->begin;
}

std::uint64_t OutputView::end_of(std::uint32_t attempt) const {
  const auto behind = std::ranges::find_if(attempts_, [&](const Attempt& each) { return each.number > attempt; });
  return behind == attempts_.end() ? total_ : behind->begin;
}

bool OutputView::begins_at(std::uint64_t offset) const {
  return offset > 0 && std::ranges::find(attempts_, offset, &Attempt::begin) != attempts_.end();
}

std::optional<OutputRange> OutputView::gap_at(std::uint64_t offset) const {
  for (const Attempt& attempt : attempts_) {
    for (const OutputRange& gap : attempt.dropped) {
      if (gap.from <= offset && offset < gap.to) return gap;
    }
  }
  return std::nullopt;
}

std::uint64_t OutputView::start(std::uint64_t offset) const {
  offset = std::min(offset, total_);
  while (const auto gap = gap_at(offset)) offset = gap->to;
  return offset;
}

Queue::Output OutputView::read(const Result& rows, std::pair<std::size_t, std::size_t> range, std::uint64_t offset,
                               std::size_t limit, std::optional<Stream> stream) const {
  OutputPiece piece{.offset = start(offset), .total = total_};
  const std::uint64_t asked = std::min(offset, total_);
  if (piece.offset > asked) piece.dropped = OutputRange{asked, piece.offset};
  std::uint64_t at = piece.offset;
  std::size_t used = 0;
  bool is_at_gap = false;
  for (std::size_t row = range.first; row < range.second && used < limit; ++row) {
    const auto number = static_cast<std::uint32_t>(rows.number(row, rows.column("attempt")).value_or(0));
    const auto attempt = std::ranges::find(attempts_, number, &Attempt::number);
    if (attempt == attempts_.end()) continue;
    const std::uint64_t begin =
        attempt->begin + static_cast<std::uint64_t>(rows.number(row, rows.column("start")).value_or(0));
    const std::string bytes = rows.bytes(row, rows.column("bytes")).value_or("");
    if (begin + bytes.size() <= at) continue;
    is_at_gap = begin > at && (at > piece.offset || piece.dropped);
    if (is_at_gap) break;  // which the next read tells
    if (begin > at) {
      piece.dropped = OutputRange{at, begin};
      piece.offset = begin;
      at = begin;
    }
    const std::vector<Stretch> stretches = stretches_of(rows.text(row, rows.column("marks")));
    for (std::size_t each = 0; each < stretches.size() && used < limit; ++each) {
      const std::uint64_t end =
          begin + (each + 1 < stretches.size() ? std::min(stretches[each + 1].from, bytes.size()) : bytes.size());
      if (end <= at) continue;
      const std::size_t size = std::min<std::uint64_t>(end - at, limit - used);
      const bool is_wanted = !stream || stretches[each].stream == *stream || stretches[each].stream == Stream::mixed;
      if (is_wanted) {
        piece.bytes += bytes.substr(static_cast<std::size_t>(at - begin), size);
        if (stream) piece.parts.push_back({at, at + size});
      }
      at += size;
      used += size;
    }
  }
  const std::uint64_t end = used < limit && !is_at_gap ? end_of_lost(at) : at;
  if (at == piece.offset && end > at && !piece.dropped) {
    piece.dropped = OutputRange{at, end};
    piece.offset = end;
    at = end;
  }
  piece.next = at;
  const bool gap_follows = is_at_gap || end > at || gap_at(at) || begins_at(at);
  return {.piece = std::move(piece), .done = is_over_ && at >= total_, .gap_follows = gap_follows};
}

}  // namespace duet::task::postgres
