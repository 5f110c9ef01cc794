#include "app/top/screen_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include "app/view/display_text.h"
#include "duet/rpc/utf8.h"

namespace duet::app::top {
namespace {

constexpr char escape = '\x1b';
constexpr std::size_t most_marks = 2;  // on one letter

bool is_between(char c, char first, char last) { return c >= first && c <= last; }

// `ESC [`, parameters, and the letter that ends them; a byte that has no place there is not swallowed.
std::size_t control_sequence_length(std::string_view text) {
  std::size_t at = 2;
  while (at < text.size() && is_between(text[at], ' ', '?')) ++at;
  return at < text.size() && is_between(text[at], '@', '~') ? at + 1 : at;
}

// A title, a link, a picture: up to BEL or `ESC \`, at most to the end of the line.
std::size_t string_sequence_length(std::string_view text) {
  const std::size_t end = std::min(text.find_first_of("\a\n\x1b", 2), text.size());
  if (end == text.size() || text[end] == '\n') return end;
  if (text[end] == '\a') return end + 1;
  return text.substr(end).starts_with("\x1b\\") ? end + 2 : end;
}

std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return text.size();
  if (text[1] == '[') return control_sequence_length(text);
  if (std::string_view("]PX^_").find(text[1]) != std::string_view::npos) return string_sequence_length(text);
  std::size_t at = 1;
  while (at < text.size() && is_between(text[at], ' ', '/')) ++at;
  return at < text.size() && is_between(text[at], '0', '~') ? at + 1 : at;
}

// Characters without a picture that change how others are shown, or on whose width no two terminals agree.
bool is_invisible(std::string_view character) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> ranges{{
      {"\u00AD", "\u00AD"},
      {"\u061C", "\u061C"},
      {"\u180E", "\u180E"},
      {"\u200B", "\u200F"},
      {"\u2028", "\u202E"},
      {"\u2060", "\u206F"},
      {"\uFE00", "\uFE0F"},
      {"\uFEFF", "\uFEFF"},
      {"\U000E0000", "\U000E0FFF"},
  }};
  // UTF-8 of the same length sorts as the characters do.
  return std::ranges::any_of(ranges, [&](const auto& range) {
    return character.size() == range.first.size() && character >= range.first && character <= range.second;
  });
}

// What a terminal would show of a line: what stands before a carriage return was written over.
std::string shown_line(std::string_view line) {
  while (line.ends_with('\r')) line.remove_suffix(1);
  return screen_text(line.substr(line.rfind('\r') + 1));
}

}  // namespace

std::string screen_text(std::string_view text) {
  std::string kept;
  kept.reserve(text.size());
  for (std::size_t marks = 0; !text.empty();) {
    if (text.front() == escape) {
      text.remove_prefix(escape_length(text));
      continue;
    }
    const std::size_t length = std::max<std::size_t>(rpc::utf8_length(text.data(), text.data() + text.size()), 1);
    const std::string_view character = text.substr(0, length);
    text.remove_prefix(length);
    const bool is_blank = character == "\n" || character == "\r" || character == "\t";
    if (length == 1 && !is_blank && (is_between(character[0], '\0', '\x1f') || character[0] == '\x7f')) continue;
    if (is_invisible(character)) continue;
    marks = length > 1 && display_width(character) == 0 ? marks + 1 : 0;
    if (marks <= most_marks) kept += character;
  }
  return one_line(kept);
}

std::string last_line(std::string_view output) {
  while (!output.empty()) {
    const std::size_t begin = output.rfind('\n') + 1;
    std::string shown = shown_line(output.substr(begin));
    if (shown.find_first_not_of(' ') != std::string::npos) return shown;
    output = output.substr(0, begin == 0 ? 0 : begin - 1);
  }
  return {};
}

void OutputLines::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t room = longest_line - unfinished_.size();
    const std::size_t end = bytes.substr(0, room + 1).find('\n');
    const std::size_t taken = std::min({end, room, bytes.size()});
    unfinished_ += bytes.substr(0, taken);
    bytes.remove_prefix(taken);
    if (end != std::string_view::npos) {
      bytes.remove_prefix(1);
      end_line();
    } else if (unfinished_.size() == longest_line) {
      end_line();
    }
  }
}

void OutputLines::end_line() {
  const std::string_view whole = rpc::whole_characters(unfinished_);
  const bool is_cut = unfinished_.size() == longest_line;
  std::string rest = is_cut ? unfinished_.substr(whole.size()) : std::string();
  add(shown_line(is_cut ? whole : std::string_view(unfinished_)));
  unfinished_ = std::move(rest);
}

void OutputLines::note(const std::string& text) {
  if (!unfinished_.empty()) end_line();
  add(text);
}

void OutputLines::add(std::string line) {
  bytes_ += line.size();
  lines_.push_back(std::move(line));
  while (lines_.size() > most_lines || bytes_ > most_bytes) {
    bytes_ -= lines_.front().size();
    lines_.pop_front();
    ++first_;
  }
}

std::string OutputLines::at(std::uint64_t number) const {
  if (number - first_ < lines_.size()) return lines_[number - first_];
  return shown_line(rpc::whole_characters(unfinished_));
}

}  // namespace duet::app::top
