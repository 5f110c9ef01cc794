#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "duet/framing/header_block.h"

namespace duet::framing {

/// The reading rules of LSP framing, applied to a whole stream at once, with no regard to time or
/// memory: what a decoder must say about the stream however it arrives. Events are written as
/// StreamDriver writes them. Only single header lines are read by the same code.
class SlowReader {
 public:
  using Accepts = std::function<bool(std::string_view)>;

  SlowReader(std::string_view stream, Accepts accepts, std::size_t max_length = max_body)
      : stream_(stream), accepts_(std::move(accepts)), max_length_(max_length) {}

  std::vector<std::string> events() {
    for (Next at = 0; at && *at < stream_.size(); is_guess_ = std::exchange(next_is_guess_, false)) at = frame(*at);
    return std::move(events_);
  }

 private:
  using Next = std::optional<std::size_t>;  // where the next frame begins; none at the end

  // Of a guess only what is whole counts.
  void note(std::string_view reason, std::string_view body = {}) {
    if (is_guess_ && body.empty()) return;
    events_.push_back("! " + std::string(reason) + (body.empty() ? "" : " ") + std::string(body));
  }
  void note(Fault fault, std::string_view body = {}) { note(reason_of(fault), body); }

  // The line at `at` without its "\n", or nothing if it does not end.
  std::optional<std::string_view> line_at(std::size_t at) const {
    const std::size_t newline = stream_.find('\n', at);
    if (newline == std::string_view::npos) return std::nullopt;
    return stream_.substr(at, newline - at);
  }

  Next frame(std::size_t begin) {
    HeaderBlock block;
    for (std::size_t at = begin;;) {
      const auto line = line_at(at);
      if (!line || at + line->size() + 1 - begin > max_header) return unfinished_header(begin, at, block);
      const std::size_t next = at + line->size() + 1;
      if (*line == "\r") return end_of_header(begin, next, block);
      if (!line->ends_with('\r') || !block.add(read_header_line(line->substr(0, line->size() - 1)))) {
        note(Fault::malformed_header);
        return search(begin, begin);
      }
      at = next;
    }
  }

  Next unfinished_header(std::size_t begin, std::size_t line_begin, HeaderBlock block) {
    const bool possible = may_become_header_line(stream_.substr(line_begin, begin + max_header - line_begin));
    if (stream_.size() - begin < max_header) {
      note(possible ? Fault::length_mismatch : Fault::malformed_header);
      return std::nullopt;
    }
    note(possible ? Fault::header_too_large : Fault::malformed_header);
    return possible ? overlong_header(begin, line_begin, block) : search(begin, begin);
  }

  Next overlong_header(std::size_t begin, std::size_t at, HeaderBlock block) {
    for (;;) {
      const auto line = line_at(at);
      if (!line) return std::nullopt;
      const std::size_t next = at + line->size() + 1;
      if (*line == "\r" && block.length()) return search(next, next + saturated(*block.length(), next));
      if (!line->ends_with('\r')) return search(begin, begin);
      const std::string_view text = line->substr(0, line->size() - 1);
      const HeaderLine read = read_header_line(text);
      const bool too_long = text.size() >= max_header;
      if (too_long && read.kind == HeaderLine::Kind::length) return search(begin, begin);
      if (!block.add(read)) return search(begin, begin);
      at = next;
    }
  }

  std::size_t saturated(std::uint64_t length, std::size_t behind) const {
    return static_cast<std::size_t>(std::min<std::uint64_t>(length, stream_.size() + 1 - behind));
  }

  Next end_of_header(std::size_t begin, std::size_t body, const HeaderBlock& block) {
    if (!block.length()) {
      note(Fault::malformed_header);
      return search(begin, begin);
    }
    return body_of(body, block, is_guess_ ? std::nullopt : hidden_block(begin, body, block));
  }

  // What search would see in a header, if that is a block with another length.
  std::optional<HeaderBlock> hidden_block(std::size_t begin, std::size_t body, const HeaderBlock& block) const {
    const Next start = block_start(begin, body - 4, true);
    if (!start || *start == begin) return std::nullopt;
    HeaderBlock hidden;
    for (std::size_t at = *start; at < body - 2; at += line_at(at)->size() + 1)
      hidden.add(read_header_line(line_from(at)));
    const bool is_other = hidden.length() != block.length() && *hidden.length() <= max_length_;
    return is_other ? std::optional(hidden) : std::nullopt;
  }

  Next try_instead(std::size_t body, const HeaderBlock& hidden) {
    is_guess_ = true;
    next_is_guess_ = false;
    return body_of(body, hidden, std::nullopt);
  }

  Next body_of(std::size_t body, const HeaderBlock& block, const std::optional<HeaderBlock>& hidden) {
    const std::size_t body_end = body + saturated(*block.length(), body);
    if (*block.length() > max_length_) {
      note(Fault::oversize);
      return hidden ? try_instead(body, *hidden) : search(body, body_end);
    }
    const auto fault = block.content_fault();
    const std::size_t there = std::min(body_end, stream_.size());
    if (const Next inner = first_block(body, body, there, body)) {
      note(fault.value_or(Fault::length_mismatch));
      return hidden ? try_instead(body, *hidden) : inner;
    }
    if (body_end > stream_.size()) {
      note(Fault::length_mismatch);
      return std::nullopt;
    }
    return whole_body(body, body_end, fault, hidden);
  }

  Next whole_body(std::size_t begin, std::size_t end, std::optional<Fault> fault,
                  const std::optional<HeaderBlock>& hidden) {
    const std::string_view body = stream_.substr(begin, end - begin);
    if (accepts_(body)) {
      if (fault) {
        note(*fault, body);
      } else {
        events_.emplace_back(body);
      }
      return end;
    }
    if (fault) {
      note(*fault);
    } else {
      note("invalid-json");
    }
    return hidden ? try_instead(begin, *hidden) : search(begin, end);
  }

  Next search(std::size_t from, std::size_t expected) { return first_block(from, from, stream_.size(), expected); }

  // The first header block whose end lies between `from` and `to` and whose lines do not reach above `top`.
  Next first_block(std::size_t top, std::size_t from, std::size_t to, std::size_t expected) {
    const std::string_view text = stream_.substr(0, to);
    for (std::size_t end = text.find("\r\n\r\n", from); end != std::string_view::npos;
         end = text.find("\r\n\r\n", end + 1)) {
      const Next found = block_start(top, end, true);
      const bool may_be_expected = expected > top && expected <= end;
      const Next at_expected = may_be_expected ? block_start(expected, end, false) : std::nullopt;
      if (!found && !at_expected) continue;
      next_is_guess_ = found && (follows_another_length(*found, top, end) || holds_another_length(*found, end));
      return at_expected ? at_expected : found;
    }
    return std::nullopt;
  }

  // The earliest place from which everything down to `end` is a header block.
  Next block_start(std::size_t top, std::size_t end, bool top_is_line_start) const {
    const std::size_t highest = highest_start(top, end);
    if (!length_between(highest, end)) return std::nullopt;
    for (std::size_t start = highest; start < end; ++start) {
      const bool line_start = start == top ? top_is_line_start : stream_[start - 1] == '\n';
      if ((line_start || is_known_header(start)) && is_block(start, end)) return start;
    }
    return std::nullopt;
  }

  static std::size_t highest_start(std::size_t top, std::size_t end) {
    return std::max(top, end + 4 > max_header ? end + 4 - max_header : 0);
  }

  // Whether the line above a block ends with a length that differs from its own.
  bool follows_another_length(std::size_t start, std::size_t top, std::size_t end) const {
    const std::size_t highest = highest_start(top, end);
    if (start < highest + 2 || stream_.substr(start - 2, 2) != "\r\n") return false;
    const std::size_t newline = stream_.substr(0, start - 2).rfind('\n');
    const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
    const auto above = last_length(std::max(line, highest), start - 2);
    return above && above != last_length(start, end);
  }

  // Whether a line of another name ends with a length that differs from the block's own.
  bool holds_another_length(std::size_t start, std::size_t end) const {
    const auto own = last_length(start, end);
    for (std::size_t at = start; at < end; at += line_at(at)->size() + 1) {
      const auto there = is_length(at) ? own : last_length(at, at + line_at(at)->size());
      if (there && there != own) return true;
    }
    return false;
  }

  std::optional<std::uint64_t> last_length(std::size_t from, std::size_t to) const {
    for (std::size_t at = to; at-- > from;) {
      if (is_known_header(at) && is_length(at)) return read_header_line(line_from(at)).length;
    }
    return std::nullopt;
  }

  // Not by the rules, only to be less slow.
  bool length_between(std::size_t from, std::size_t to) const {
    for (; from < to; ++from) {
      if (is_known_header(from) && is_length(from)) return true;
    }
    return false;
  }

  bool is_known_header(std::size_t at) const {
    if (stream_[at] != 'C' && stream_[at] != 'c') return false;
    const std::string_view line = line_from(at);
    const HeaderLine::Kind kind = read_header_line(line).kind;
    return kind == HeaderLine::Kind::length || (kind == HeaderLine::Kind::content_type && is_spelt_like_type(line));
  }

  // A content type in a JSON string has a quote behind it, which in a header would not be closed, unless by a quote of
  // what follows: there is a colon between them, most likely.
  static bool is_spelt_like_type(std::string_view line) {
    std::string bare;
    bool quoted = false;
    bool escaped = false;
    for (const char c : line.substr(line.find(':') + 1)) {
      if (c == '\0' || c == ':') return false;
      if (c == '"' && !escaped) quoted = !quoted;
      if (!quoted) bare += c;
      escaped = quoted && c == '\\' && !escaped;
    }
    const std::string token = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.+_*";
    return !quoted && bare.find_first_not_of(token + "/;= \t\"") == std::string::npos;
  }

  bool is_block(std::size_t start, std::size_t end) const {
    HeaderBlock block;
    for (std::size_t at = start; at < end + 2;) {
      const std::string_view line = *line_at(at);
      if (!line.ends_with('\r')) return false;
      const std::string_view text = line.substr(0, line.size() - 1);
      const HeaderLine read = read_header_line(text);
      if (read.kind == HeaderLine::Kind::content_type && !is_spelt_like_type(text)) return false;
      if (!block.add(read)) return false;
      at += line.size() + 1;
    }
    return block.length() && !hides_length(start, end);
  }

  bool hides_length(std::size_t start, std::size_t end) const {
    for (std::size_t at = start; at < end; at += line_at(at)->size() + 1) {
      if (hides_length(at, *line_at(at), end)) return true;
    }
    return false;
  }

  // Whether a line of another name ends with a length, and no line below it has one.
  bool hides_length(std::size_t at, std::string_view line, std::size_t end) const {
    for (std::size_t inner = at + 1; inner < at + line.size(); ++inner) {
      if (is_known_header(inner) && is_length(inner)) return !length_below(at + line.size() + 1, end);
    }
    return false;
  }

  std::string_view line_from(std::size_t at) const { return stream_.substr(at, stream_.find("\r\n", at) - at); }

  bool is_length(std::size_t at) const { return read_header_line(line_from(at)).kind == HeaderLine::Kind::length; }

  bool length_below(std::size_t at, std::size_t end) const {
    for (; at < end; at += line_at(at)->size() + 1) {
      if (is_length(at)) return true;
    }
    return false;
  }

  std::string_view stream_;
  Accepts accepts_;
  std::size_t max_length_;
  std::vector<std::string> events_;
  bool is_guess_ = false;  // the frame that is being read begins right behind another length
  bool next_is_guess_ = false;
};

}  // namespace duet::framing
