#include "duet/framing/header_block.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace duet::framing {
namespace {

constexpr std::string_view length_name = "content-length";
constexpr std::string_view type_name = "content-type";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool is_name_character(char c) {
  const char small = lower(c);
  return (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

bool equals(std::string_view text, std::string_view lower_case) {
  return text.size() == lower_case.size() &&
         std::equal(text.begin(), text.end(), lower_case.begin(), [](char a, char b) { return lower(a) == b; });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::optional<std::uint64_t> read_length(std::string_view digits) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  if (digits.empty()) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    value = value > (most - digit) / 10 ? most : value * 10 + digit;
  }
  return value;
}

// Behind the quoted string that begins at `at`, in which a backslash stands before any character; npos if it has no
// end.
std::size_t end_of_quoted(std::string_view text, std::size_t at) {
  for (++at; at < text.size(); ++at) {
    if (text[at] == '"') return at + 1;
    if (text[at] == '\\') ++at;
  }
  return std::string_view::npos;
}

std::string unquoted(std::string_view value) {
  if (!value.starts_with('"') || end_of_quoted(value, 0) != value.size()) return std::string(value);
  std::string text;
  for (std::size_t at = 1; at + 1 < value.size(); ++at) {
    if (value[at] == '\\') ++at;
    text += value[at];
  }
  return text;
}

// Cuts the text up to the next `;` that is not inside quotes.
std::string_view next_parameter(std::string_view& rest) {
  std::size_t at = 0;
  while (at < rest.size() && rest[at] != ';') {
    at = rest[at] == '"' ? std::min(end_of_quoted(rest, at), rest.size()) : at + 1;
  }
  const std::string_view parameter = trimmed(rest.substr(0, at));
  rest.remove_prefix(std::min(rest.size(), at + 1));
  return parameter;
}

std::optional<Fault> content_type_fault(std::string_view value) {
  if (!equals(next_parameter(value), "application/vscode-jsonrpc")) return Fault::unsupported_content_type;
  while (!value.empty()) {
    const std::string_view parameter = next_parameter(value);
    const std::size_t equal_sign = parameter.find('=');
    if (equal_sign == std::string_view::npos || !equals(trimmed(parameter.substr(0, equal_sign)), "charset")) continue;
    const std::string charset = unquoted(trimmed(parameter.substr(equal_sign + 1)));
    if (!equals(charset, "utf-8") && !equals(charset, "utf8")) return Fault::bad_charset;
  }
  return std::nullopt;
}

bool ends_with_name(std::string_view text, std::string_view name) {
  return text.size() >= name.size() && equals(text.substr(text.size() - name.size()), name);
}

// Whether the value of a Content-Type is spelt like one, right or wrong. Text in a JSON string, with its quote and
// bracket behind it, is not; nor is anything with a colon, so that only the last colon of a line can be a type's own.
bool is_spelt_like_type(std::string_view value) {
  const auto may_stand_bare = [](char c) { return is_name_character(c) || std::strchr("/;= \t.+_*", c) != nullptr; };
  if (value.find_first_of(std::string_view("\0:", 2)) != std::string_view::npos) return false;
  for (std::size_t at = 0; at < value.size();) {
    if (value[at] != '"' && !may_stand_bare(value[at])) return false;
    at = value[at] == '"' ? end_of_quoted(value, at) : at + 1;
    if (at == std::string_view::npos) return false;
  }
  return true;
}

// Where in a line a Content-Type header begins.
std::size_t find_inner_type(std::string_view line) {
  const std::size_t colon = line.rfind(':');
  if (colon == std::string_view::npos || !ends_with_name(line.substr(0, colon), type_name)) return no_block;
  return is_spelt_like_type(line.substr(colon + 1)) ? colon - type_name.size() : no_block;
}

struct InnerLength {
  std::size_t at;
  std::uint64_t length;
};

// A Content-Length header that ends a line. Only the last colon can be its own: behind it there are digits.
std::optional<InnerLength> find_inner_length(std::string_view line) {
  const std::size_t colon = line.rfind(':');
  if (colon == std::string_view::npos || !ends_with_name(line.substr(0, colon), length_name)) return std::nullopt;
  const std::optional<std::uint64_t> length = read_length(trimmed(line.substr(colon + 1)));
  if (!length) return std::nullopt;
  return InnerLength{colon - length_name.size(), *length};
}

// Grows a block upwards, line by line, from its last one. The length nearest to its end counts: further up there may
// be the remains of another block.
class BlockAbove {
 public:
  FoundBlock found() const { return length_ ? FoundBlock{start_, has_rival_} : FoundBlock{}; }

  // False when the block cannot reach above this line.
  bool add(std::string_view line, std::size_t offset, bool whole) {
    const HeaderLine read = whole ? read_header_line(line) : HeaderLine{};
    const bool is_length = read.kind == HeaderLine::Kind::length && agrees(read.length);
    const bool is_type =
        read.kind == HeaderLine::Kind::content_type && is_spelt_like_type(line.substr(line.find(':') + 1));
    const bool is_other = is_type || read.kind == HeaderLine::Kind::other;
    // A line of another name may be the end of a broken one and the start of a good one.
    const std::optional<InnerLength> inner = is_length ? std::nullopt : find_inner_length(line);
    has_rival_ = has_rival_ || (inner && !agrees(inner->length));
    const bool hides_length = is_other && !length_ && inner;
    if (hides_length || (!is_length && !is_other)) {
      begin_inside(line, offset, inner);
      return false;
    }
    if (is_length) length_ = read.length;
    start_ = offset;
    return true;
  }

 private:
  bool agrees(std::uint64_t length) const { return !length_ || *length_ == length; }

  void begin_inside(std::string_view line, std::size_t offset, const std::optional<InnerLength>& inner) {
    if (const std::size_t type = find_inner_type(line); length_ && type != no_block) start_ = offset + type;
    if (!inner || !agrees(inner->length)) return;
    length_ = inner->length;
    start_ = offset + inner->at;
  }

  std::optional<std::uint64_t> length_;
  std::size_t start_ = no_block;
  bool has_rival_ = false;
};

}  // namespace

std::size_t name_length(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size() && is_name_character(line[at])) ++at;
  return at;
}

HeaderLine read_header_line(std::string_view line) {
  const std::size_t name_end = name_length(line);
  if (name_end == 0 || name_end == line.size() || line[name_end] != ':') return {};
  const std::string_view name = line.substr(0, name_end);
  const std::string_view value = trimmed(line.substr(name_end + 1));
  if (equals(name, length_name)) {
    const std::optional<std::uint64_t> length = read_length(value);
    if (!length) return {.kind = HeaderLine::Kind::bad_length};
    return {.kind = HeaderLine::Kind::length, .length = *length};
  }
  if (equals(name, type_name)) {
    return {.kind = HeaderLine::Kind::content_type, .content_fault = content_type_fault(value)};
  }
  return {.kind = HeaderLine::Kind::other};
}

bool may_become_header_line(std::string_view partial) {
  if (partial.empty() || partial == "\r") return true;
  const std::size_t name_end = name_length(partial);
  return name_end == partial.size() || (name_end > 0 && partial[name_end] == ':');
}

bool HeaderBlock::add(const HeaderLine& line) {
  switch (line.kind) {
    case HeaderLine::Kind::malformed:
    case HeaderLine::Kind::bad_length:
      return false;
    case HeaderLine::Kind::length:
      if (length_ && *length_ != line.length) return false;
      length_ = line.length;
      return true;
    case HeaderLine::Kind::content_type:
      if (!content_fault_) content_fault_ = line.content_fault;
      return true;
    case HeaderLine::Kind::other:
      return true;
  }
  return false;
}

HeaderBlock read_block(std::string_view lines) {
  HeaderBlock block;
  while (!lines.empty()) {
    const std::size_t size = lines.find("\r\n");
    block.add(read_header_line(lines.substr(0, size)));
    lines.remove_prefix(std::min(size, lines.size() - 2) + 2);
  }
  return block;
}

std::size_t find_block_end(std::string_view text, std::size_t from) {
  constexpr std::string_view blank_line = "\r\n\r\n";
  while (from + blank_line.size() <= text.size()) {
    const std::size_t span = text.size() - (blank_line.size() - 1) - from;
    const void* hit = std::memchr(text.data() + from, '\r', span);
    if (hit == nullptr) return no_block;
    from = static_cast<std::size_t>(static_cast<const char*>(hit) - text.data());
    if (text.substr(from, blank_line.size()) == blank_line) return from;
    ++from;
  }
  return no_block;
}

FoundBlock find_block(std::string_view text, std::size_t end, bool at_line_start) {
  constexpr std::size_t end_size = 4;
  const std::size_t floor = end + end_size > max_header ? end + end_size - max_header : 0;
  BlockAbove block;
  for (std::size_t line_end = end;;) {
    const void* newline = line_end > floor ? memrchr(text.data() + floor, '\n', line_end - floor) : nullptr;
    std::size_t line_start = floor;
    if (newline != nullptr) line_start = static_cast<std::size_t>(static_cast<const char*>(newline) - text.data()) + 1;
    const bool whole = newline != nullptr || (floor == 0 ? at_line_start : text[floor - 1] == '\n');
    if (!block.add(text.substr(line_start, line_end - line_start), line_start, whole)) break;
    if (newline == nullptr) break;
    const bool ended_properly = line_start >= floor + 2 && text[line_start - 2] == '\r';
    if (!ended_properly) break;
    line_end = line_start - 2;
  }
  return block.found();
}

}  // namespace duet::framing
