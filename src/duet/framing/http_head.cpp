#include "duet/framing/http_head.h"

#include <algorithm>

#include "duet/framing/http_text.h"
#include "duet/framing/input_buffer.h"

namespace duet::framing {
namespace {

constexpr unsigned char delete_character = 0x7F;

// `_` for `-` in a name that says where a body ends: some programs on the way take one for the other.
bool is_disguised(std::string_view name, std::string_view lower_case) {
  return name.size() == lower_case.size() &&
         std::equal(name.begin(), name.end(), lower_case.begin(),
                    [](char a, char b) { return (a == '_' ? '-' : ascii_lower(a)) == b; });
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

HttpFields::Iterator& HttpFields::Iterator::operator++() {
  const std::size_t newline = find_newline(rest_, 0);
  is_end_ = newline == std::string_view::npos;
  if (is_end_) return *this;
  const std::string_view line = rest_.substr(0, newline - 1);
  const std::size_t colon = line.find(':');
  field_ = {line.substr(0, colon), without_blanks(line.substr(colon + 1))};
  rest_.remove_prefix(newline + 1);
  return *this;
}

std::optional<std::string_view> HttpFields::find(std::string_view name) const {
  for (const HttpField& field : *this) {
    if (same_word(field.name, name)) return field.value;
  }
  return std::nullopt;
}

std::size_t HttpFields::count(std::string_view name) const {
  std::size_t found = 0;
  for (const HttpField& field : *this) found += same_word(field.name, name) ? 1 : 0;
  return found;
}

bool HttpFields::lists(std::string_view name, std::string_view word) const {
  for (const HttpField& field : *this) {
    if (!same_word(field.name, name)) continue;
    for (std::string_view rest = field.value; !rest.empty();) {
      if (same_word(cut_member(rest, ','), word)) return true;
    }
  }
  return false;
}

HttpHeadScan::Found HttpHeadScan::advance(std::string_view bytes) {
  const std::string_view text = bytes.substr(0, http_max_head);
  for (; at_ < text.size(); ++at_) {
    const auto c = static_cast<unsigned char>(text[at_]);
    if (c > ' ' && c != delete_character) continue;
    if (target_is_too_long()) return refuse(HttpFault::target_too_long);
    if (c == ' ') {
      note_blank();
    } else if (c == '\r') {
      if (at_ + 1 == text.size()) break;
      if (text[at_ + 1] != '\n') return refuse(HttpFault::malformed);
      end_target();
    } else if (c != '\n') {
      return refuse(HttpFault::malformed);
    } else if (end_of_line(text)) {
      ++at_;
      const std::optional<HttpFault> fault = verdict();
      return fault ? refuse(*fault) : Found::head;
    } else if (fields_ > http_max_fields) {
      return refuse(HttpFault::head_too_large);
    }
  }
  if (target_is_too_long()) return refuse(HttpFault::target_too_long);
  return text.size() == http_max_head ? refuse(HttpFault::head_too_large) : Found::nothing;
}

HttpHead HttpHeadScan::head(std::string_view bytes) const {
  HttpHead head;
  head.method = bytes.substr(0, target_begin_ - 1);
  head.target = bytes.substr(target_begin_, target_end_ - target_begin_);
  const std::size_t question = std::min(head.target.find('?'), head.target.size());
  head.path = head.target.substr(0, question);
  head.query = head.target.substr(std::min(question + 1, head.target.size()));
  head.fields = HttpFields(bytes.substr(fields_begin_, at_ - 2 - fields_begin_));
  head.host = head.fields.find("host").value_or(std::string_view());
  head.content_length = length_;
  head.keeps_alive = keeps_alive_;
  head.expectation = expectation_;
  return head;
}

bool HttpHeadScan::target_is_too_long() const {
  return target_begin_ > 0 && target_end_ == 0 && at_ - target_begin_ > http_max_target;
}

void HttpHeadScan::note_blank() {
  if (fields_begin_ > 0) return;
  if (target_begin_ == 0) {
    target_begin_ = at_ + 1;
  } else {
    end_target();
  }
}

void HttpHeadScan::end_target() {
  if (target_begin_ > 0 && target_end_ == 0) target_end_ = at_;
}

// True when it was the last of the head.
bool HttpHeadScan::end_of_line(std::string_view text) {
  end_target();
  std::string_view line = text.substr(line_begin_, at_ - line_begin_);
  if (line.ends_with('\r')) {
    line.remove_suffix(1);
  } else {
    is_malformed_ = true;
  }
  line_begin_ = at_ + 1;
  if (line.empty()) return true;
  if (fields_begin_ == 0) {
    read_request_line(line);
    fields_begin_ = at_ + 1;
  } else {
    ++fields_;
    read_field(line);
  }
  return false;
}

void HttpHeadScan::read_request_line(std::string_view line) {
  if (target_begin_ == 0) {
    is_malformed_ = true;
    return;
  }
  const std::string_view method = line.substr(0, target_begin_ - 1);
  const std::string_view target = line.substr(target_begin_, target_end_ - target_begin_);
  const std::string_view version = line.substr(std::min(target_end_ + 1, line.size()));
  if (!is_token(method) || !target.starts_with('/') || !is_ascii(target)) is_malformed_ = true;
  if (version.find(' ') != std::string_view::npos) is_malformed_ = true;
  is_version_1_1_ = version == "HTTP/1.1";
  takes_no_body_ = method == "GET" || method == "HEAD";
}

// No name with a blank in it or before it is a token, nor is the beginning of a folded line.
void HttpHeadScan::read_field(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || !is_token(name)) {
    is_malformed_ = true;
  } else {
    read_special_field(name, without_blanks(line.substr(colon + 1)));
  }
}

void HttpHeadScan::read_special_field(std::string_view name, std::string_view value) {
  if (same_word(name, "host")) {
    ++hosts_;
  } else if (same_word(name, "content-length")) {
    read_length(value);
  } else if (same_word(name, "transfer-encoding")) {
    has_transfer_encoding_ = true;
  } else if (same_word(name, "connection") || same_word(name, "proxy-connection")) {
    read_connection(value);
  } else if (same_word(name, "expect")) {
    const bool is_known = expectation_ == HttpExpectation::none && same_word(value, "100-continue");
    expectation_ = is_known ? HttpExpectation::to_continue : HttpExpectation::other;
  } else if (is_disguised(name, "transfer-encoding") || is_disguised(name, "content-length")) {
    is_malformed_ = true;
  }
}

void HttpHeadScan::read_length(std::string_view digits) {
  constexpr std::size_t most_digits = 19;  // whatever they are, they are no overflow
  ++lengths_;
  if (digits.empty() || digits.size() > most_digits ||
      !std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    is_malformed_ = true;
    return;
  }
  length_ = 0;
  for (const char c : digits) length_ = length_ * 10 + static_cast<std::uint64_t>(c - '0');
}

void HttpHeadScan::read_connection(std::string_view list) {
  while (!list.empty()) {
    const std::string_view word = cut_member(list, ',');
    if (!word.empty() && !is_token(word)) is_malformed_ = true;
    if (same_word(word, "close")) keeps_alive_ = false;
  }
}

std::optional<HttpFault> HttpHeadScan::verdict() const {
  const bool has_unwanted_body = takes_no_body_ && length_ > 0;
  if (is_malformed_ || fields_begin_ == 0 || hosts_ != 1 || lengths_ > 1 || has_unwanted_body)
    return HttpFault::malformed;
  if (!is_version_1_1_) return HttpFault::version;
  if (!has_transfer_encoding_) return std::nullopt;
  return lengths_ > 0 ? HttpFault::malformed : HttpFault::length_required;
}

HttpHeadScan::Found HttpHeadScan::refuse(HttpFault fault) {
  fault_ = fault;
  return Found::fault;
}

}  // namespace duet::framing
