#include "duet/framing/content_length.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

namespace duet::framing {
namespace {

// A block's end may be split between what was searched and what is still to come.
std::size_t where_to_go_on(std::size_t searched) { return searched > 3 ? searched - 3 : 0; }

}  // namespace

// There is one object to return, and it is built in place: copying a frame just written costs more than finding it,
// because the processor waits for the parts to reach memory.
std::optional<Frame> ContentLengthDecoder::next() {
  std::optional<Frame> frame;
  in_.drop(used_);
  used_ = 0;
  if (in_.empty() && state_ == State::header) return frame;
  for (bool goes_on = true; goes_on && !frame;) {
    const State before = state_;
    bool found = false;
    switch (state_) {
      case State::header:
        read_header(frame);
        break;
      case State::body:
        read_body(frame);
        break;
      case State::overlong_header:
        found = read_overlong_header();
        break;
      case State::search:
        found = search();
        break;
    }
    goes_on = found || state_ != before;
  }
  if (!frame) in_.keep();
  return frame;
}

// The header everybody sends, at once: `Content-Length: N` and nothing else, all of it there. Half the cost of a small
// message would be spent on its header otherwise. Anything unusual is left to the loop below.
std::size_t ContentLengthDecoder::read_plain_header() {
  constexpr std::string_view name = "Content-Length: ";
  constexpr std::size_t most_digits = 8;
  const std::string_view view = in_.view();
  if (scanned_ != 0 || view.size() < name.size() + most_digits + 4 || !view.starts_with(name)) return 0;
  std::uint64_t length = 0;
  std::size_t at = name.size();
  for (; at < name.size() + most_digits && view[at] >= '0' && view[at] <= '9'; ++at) {
    length = length * 10 + static_cast<std::uint64_t>(view[at] - '0');
  }
  if (at == name.size() || std::memcmp(view.data() + at, "\r\n\r\n", 4) != 0) return 0;
  block_.add({.kind = HeaderLine::Kind::length, .length = length});
  return at + 4;
}

void ContentLengthDecoder::read_header(std::optional<Frame>& frame) {
  if (const std::size_t size = read_plain_header(); size != 0) {
    hidden_block_.reset();
    return end_of_header(size, frame);
  }
  const std::string_view head = in_.view().substr(0, max_header);
  for (std::size_t at = find_newline(head, scanned_); at != std::string_view::npos; at = find_newline(head, scanned_)) {
    std::string_view line = head.substr(line_begin_, at - line_begin_);
    const bool ended_properly = line.ends_with('\r');
    if (ended_properly) line.remove_suffix(1);
    if (ended_properly && line.empty()) {
      note_hidden_block(head.substr(0, at + 1));
      return end_of_header(at + 1, frame);
    }
    if (!ended_properly || !block_.add(read_header_line(line))) return malformed_header(at + 1, frame);
    line_begin_ = scanned_ = at + 1;
  }
  scanned_ = head.size();
  if (head.size() == max_header) header_limit_reached(frame);
}

void ContentLengthDecoder::malformed_header(std::size_t size, std::optional<Frame>& frame) {
  start_search(0);
  tell({.bytes = size, .announced = {}}, Fault::malformed_header, frame);
}

void ContentLengthDecoder::end_of_header(std::size_t block_size, std::optional<Frame>& frame) {
  if (!block_.length()) return malformed_header(block_size, frame);
  const std::uint64_t length = *block_.length();
  in_.drop(block_size);
  if (length > max_length_) {
    tell({.bytes = length, .announced = {}}, Fault::oversize, frame);
    if (!try_hidden_block()) start_search(length);
    return;
  }
  length_ = static_cast<std::size_t>(length);
  state_ = State::body;
  scanned_ = 0;
}

// A broken line that ran into the header of an intact frame may make a header that is fine as it stands.
void ContentLengthDecoder::note_hidden_block(std::string_view header) {
  constexpr std::size_t end_size = 4;
  hidden_block_.reset();
  if (is_guess_ || header.size() < end_size) return;
  const FoundBlock found = find_block(header, header.size() - end_size, true);
  if (!found || found.start == 0) return;
  const HeaderBlock block = read_block(header.substr(found.start, header.size() - 2 - found.start));
  if (block.length() != block_.length() && *block.length() <= max_length_) hidden_block_ = block;
}

// The body is no good: if another length could be meant, that one is tried, from the same place on.
bool ContentLengthDecoder::try_hidden_block() {
  if (!hidden_block_) return false;
  block_ = *std::exchange(hidden_block_, std::nullopt);
  length_ = static_cast<std::size_t>(*block_.length());
  state_ = State::body;
  scanned_ = 0;
  is_guess_ = true;
  return true;
}

void ContentLengthDecoder::header_limit_reached(std::optional<Frame>& frame) {
  if (!may_become_header_line(in_.view().substr(line_begin_, max_header - line_begin_))) {
    return malformed_header(max_header, frame);
  }
  state_ = State::overlong_header;
  shortened_ = Shortened::no;
  at_line_start_ = true;
  scanned_ = line_begin_;
  tell({.bytes = max_header, .announced = block_.length()}, Fault::header_too_large, frame);
}

void ContentLengthDecoder::read_body(std::optional<Frame>& frame) {
  const std::string_view view = in_.view();
  if (view.size() >= length_) {
    frame.emplace().body = view.substr(0, length_);
    frame->fault = block_.content_fault();
    frame->is_guess = is_guess_;
    used_ = length_;
    ++frames_;
    return expect_header();
  }
  const FoundBlock inside = find_block_inside(view, scanned_);
  scanned_ = where_to_go_on(view.size());
  if (!inside) return;
  // As if the whole body had been there, of which a wrong content type is the first fault.
  const Fault fault = block_.content_fault().value_or(Fault::length_mismatch);
  tell({.bytes = inside.start, .announced = length_}, fault, frame);
  if (!try_hidden_block()) resume_at(inside);
}

FoundBlock ContentLengthDecoder::find_block_inside(std::string_view body, std::size_t from) const {
  for (std::size_t end = find_block_end(body, from); end != no_block; end = find_block_end(body, end + 2)) {
    if (const FoundBlock block = find_block(body, end, true)) return block;
  }
  return {};
}

// The lines go by until the block ends, then the body it announces. True when the state changed.
bool ContentLengthDecoder::read_overlong_header() {
  for (;;) {
    const std::string_view view = in_.view();
    const std::size_t at = find_newline(view, scanned_);
    if (at == std::string_view::npos) {
      scanned_ = view.size();
      if (shorten_unfinished_line()) return false;
      start_search(0, at_line_start_);
      return true;
    }
    const std::string_view line = view.substr(line_begin_, at - line_begin_);
    if (line == "\r" && shortened_ == Shortened::no && block_.length()) {
      in_.drop(at + 1);
      start_search(*block_.length());
      return true;
    }
    if (!add_overlong_line(line)) {
      start_search(0, at_line_start_);
      return true;
    }
    line_begin_ = scanned_ = at + 1;
    trim_to(view.size() - line_begin_ + max_header);
  }
}

bool ContentLengthDecoder::add_overlong_line(std::string_view line) {
  if (!line.ends_with('\r')) return false;
  line.remove_suffix(1);
  if (shortened_ == Shortened::no && line.size() < max_header) return block_.add(read_header_line(line));
  const bool well_formed = overlong_part(line) == Shortened::in_value;
  shortened_ = Shortened::no;
  return well_formed;
}

bool ContentLengthDecoder::shorten_unfinished_line() {
  const std::string_view line = in_.view().substr(line_begin_);
  if (line.size() <= max_header) return true;
  const std::optional<Shortened> part = overlong_part(line);
  if (!part) return false;
  shortened_ = *part;
  trim_to(max_header);
  return true;
}

// How far a line has come that is longer than a header may be, however its bytes arrived: nothing but a name so far, or
// a name and a colon. A length that takes so much room is none.
std::optional<ContentLengthDecoder::Shortened> ContentLengthDecoder::overlong_part(std::string_view line) const {
  if (shortened_ == Shortened::in_value) return Shortened::in_value;
  // What is left of a shortened name was looked at before.
  const std::size_t known = shortened_ == Shortened::in_name ? max_header : 0;
  const std::size_t name = known + name_length(line.substr(known));
  if (name == line.size()) return Shortened::in_name;
  if (line[name] != ':' || name == 0) return std::nullopt;
  if (known > 0) return Shortened::in_value;
  const HeaderLine::Kind kind = read_header_line(line).kind;
  const bool is_length = kind == HeaderLine::Kind::length || kind == HeaderLine::Kind::bad_length;
  return is_length ? std::nullopt : std::optional(Shortened::in_value);
}

bool ContentLengthDecoder::search() {
  for (;;) {
    const std::string_view view = in_.view();
    const std::size_t end = find_block_end(view, scanned_);
    if (end == no_block) {
      scanned_ = std::max(scanned_, where_to_go_on(view.size()));
      trim_to(max_header);
      return false;
    }
    if (const FoundBlock block = find_expected_block(view, end)) {
      resume_at(block);
      return true;
    }
    scanned_ = end + 2;
  }
}

// A header where it was expected does not reach above that place, which is in the middle of a line if the length was
// wrong; else the bytes before may belong to it.
FoundBlock ContentLengthDecoder::find_expected_block(std::string_view text, std::size_t end) const {
  const FoundBlock found = find_block(text, end, at_line_start_);
  if (expected_at_ == 0 || expected_at_ > end) return found;
  const auto at = static_cast<std::size_t>(expected_at_);
  const FoundBlock expected = find_block(text.substr(at), end - at, false);
  return expected ? FoundBlock{at + expected.start, found.has_rival} : found;
}

void ContentLengthDecoder::trim_to(std::size_t kept) {
  const std::size_t held = in_.view().size();
  if (held <= kept) return;
  const std::size_t surplus = held - kept;
  in_.drop(surplus);
  const auto shift = [surplus](auto& position) {
    position -= std::min<std::remove_reference_t<decltype(position)>>(position, surplus);
  };
  shift(scanned_);
  shift(line_begin_);
  shift(expected_at_);
  at_line_start_ = false;
}

std::optional<Fault> ContentLengthDecoder::reject() {
  const std::size_t body_size = used_;
  const std::string_view body = in_.view().substr(0, body_size);
  used_ = 0;
  const FoundBlock inside = find_block_inside(body, 0);
  if (try_hidden_block()) {
    // The search comes later, if at all.
  } else if (inside) {
    resume_at(inside);
  } else {
    start_search(body_size);
    scanned_ = where_to_go_on(body_size);
  }
  return inside ? std::optional(Fault::length_mismatch) : std::nullopt;
}

std::optional<Fault> ContentLengthDecoder::finish() {
  if (is_guess_ || !inside_frame()) return std::nullopt;
  fault_extent_ = partial_extent();
  if (state_ == State::body) return Fault::length_mismatch;
  const bool possible = may_become_header_line(in_.view().substr(line_begin_));
  return possible ? Fault::length_mismatch : Fault::malformed_header;
}

Extent ContentLengthDecoder::partial_extent() const {
  const bool has_header = state_ == State::body;
  return {.bytes = in_.view().size() - used_, .announced = has_header ? std::optional(length_) : block_.length()};
}

bool ContentLengthDecoder::inside_frame() const {
  return state_ == State::body || (state_ == State::header && in_.view().size() > used_);
}

void ContentLengthDecoder::drop_partial() {
  if (!inside_frame()) return;
  in_.drop(in_.view().size());
  used_ = 0;
  ++frames_;
  start_search(0);
}

void ContentLengthDecoder::expect_header() {
  state_ = State::header;
  block_ = {};
  line_begin_ = scanned_ = 0;
  is_guess_ = false;
}

void ContentLengthDecoder::resume_at(const FoundBlock& block) {
  in_.drop(block.start);
  expect_header();
  is_guess_ = block.has_rival;
}

void ContentLengthDecoder::start_search(std::uint64_t payload, bool at_line_start) {
  state_ = State::search;
  expected_at_ = payload;
  at_line_start_ = at_line_start;
  scanned_ = 0;
}

// Not if it was a guess.
void ContentLengthDecoder::tell(const Extent& extent, Fault fault, std::optional<Frame>& frame) {
  ++frames_;
  if (std::exchange(is_guess_, false)) return;
  fault_extent_ = extent;
  frame.emplace().fault = fault;
}

std::size_t ContentLengthEncoder::begin(char* at, std::size_t body_size) {
  constexpr std::string_view name = "Content-Length: ";
  constexpr std::size_t most_digits = 20;
  std::memcpy(at, name.data(), name.size());
  char* end = std::to_chars(at + name.size(), at + name.size() + most_digits, body_size).ptr;
  std::memcpy(end, "\r\n\r\n", 4);
  return static_cast<std::size_t>(end + 4 - at);
}

}  // namespace duet::framing
