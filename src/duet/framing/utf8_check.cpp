#include "duet/framing/utf8_check.h"

#include <cstddef>
#include <cstring>

namespace duet::framing {
namespace {

// How many bytes at the front are ASCII, up to the last whole group of eight.
std::size_t plain_groups(std::string_view bytes) {
  constexpr std::uint64_t high_bits = 0x8080808080808080U;
  std::size_t at = 0;
  for (std::uint64_t group = 0; at + sizeof group <= bytes.size(); at += sizeof group) {
    std::memcpy(&group, bytes.data() + at, sizeof group);
    if ((group & high_bits) != 0) break;
  }
  return at;
}

}  // namespace

bool Utf8Check::add(std::string_view bytes) {
  while (!bytes.empty()) {
    if (left_ == 0) bytes.remove_prefix(plain_groups(bytes));
    if (bytes.empty()) break;
    const auto byte = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    if (left_ == 0) {
      if (!begin(byte)) return false;
      continue;
    }
    if (byte < lowest_ || byte > highest_) return false;
    lowest_ = 0x80;
    highest_ = 0xBF;
    --left_;
  }
  return true;
}

// The second byte is what tells an overlong form, a surrogate and a character that there is not.
bool Utf8Check::begin(std::uint8_t lead) {
  if (lead < 0x80) return true;
  if (lead < 0xC2 || lead > 0xF4) return false;
  left_ = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  lowest_ = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  highest_ = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return true;
}

}  // namespace duet::framing
