#include "duet/rpc/json_read.h"

namespace duet::rpc {

bool equal_in_any_case(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::ranges::equal(a, b, [&](char x, char y) { return lower(x) == lower(y); });
}

std::string integer_range(std::int64_t least, std::uint64_t most) {
  const std::string from = "integer from " + std::to_string(least);
  return most == std::numeric_limits<std::uint64_t>::max() ? from + " on" : from + " to " + std::to_string(most);
}

}  // namespace duet::rpc
