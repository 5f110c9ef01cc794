#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace duet::app {

/// What a client on the network may be called, by its token or its certificate: 1 to 64 of A-Z a-z 0-9 . _ -
constexpr bool is_client_name(std::string_view name) {
  constexpr std::size_t longest = 64;
  constexpr auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  };
  return !name.empty() && name.size() <= longest && std::ranges::all_of(name, fits);
}

}  // namespace duet::app
