#include "duet/rpc/utf8.h"

#include <algorithm>

namespace duet::rpc {
namespace {

constexpr std::size_t longest = 4;  // bytes of a character

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

// The first place that is not UTF-8, or the end.
const char* find_foreign(const char* at, const char* end) {
  while (const std::size_t length = utf8_length(at, end)) at += length;
  return at;
}

}  // namespace

bool is_utf8(std::string_view text) {
  const char* const end = text.data() + text.size();
  return find_foreign(text.data(), end) == end;
}

std::string valid_utf8(std::string text) {
  const char* const end = text.data() + text.size();
  const char* at = text.data();
  const char* foreign = find_foreign(at, end);
  if (foreign == end) return text;
  std::string out;
  for (; foreign != end; foreign = find_foreign(at, end)) {
    out.append(at, foreign).append("\xEF\xBF\xBD");
    at = foreign + 1;
  }
  return out.append(at, end);
}

std::string_view first_characters(std::string_view text, std::size_t most) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t count = 0; at != end && count < most; ++count) at += std::max<std::size_t>(utf8_length(at, end), 1);
  return text.substr(0, static_cast<std::size_t>(at - text.data()));
}

std::string_view first_bytes(std::string_view text, std::size_t most) {
  return text.size() <= most ? text : whole_characters(text.substr(0, most));
}

std::string_view last_bytes(std::string_view text, std::size_t most) {
  return text.size() <= most ? text : without_rest(text.substr(text.size() - most));
}

std::string_view whole_characters(std::string_view bytes) {
  for (std::size_t back = 1; back < longest && back <= bytes.size(); ++back) {
    const std::size_t at = bytes.size() - back;
    if (continues(bytes[at])) continue;
    const auto lead = static_cast<unsigned char>(bytes[at]);
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC2 ? 2 : 1;
    return lead <= 0xF4 && length > back ? bytes.substr(0, at) : bytes;
  }
  return bytes;
}

std::string_view without_rest(std::string_view bytes) {
  std::size_t skipped = 0;
  while (skipped < bytes.size() && skipped + 1 < longest && continues(bytes[skipped])) ++skipped;
  return bytes.substr(skipped);
}

}  // namespace duet::rpc
