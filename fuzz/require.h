#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

/// What a fuzz target demands; says what was broken and stops.
inline void require(bool kept, std::string_view promise) {
  if (kept) return;
  std::fprintf(stderr, "broken: %.*s\n", static_cast<int>(promise.size()), promise.data());
  std::abort();
}
