#include "duet/rpc/utf8.h"

namespace duet::rpc {
namespace {

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

}  // namespace duet::rpc
