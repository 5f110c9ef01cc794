#pragma once

#include <malloc.h>

#include <cstddef>

#include "duet/base/sanitizer_test.h"

/// Of the sanitizers' runtime. g++ has no header for it.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();  // NOLINT(bugprone-reserved-identifier)

namespace duet::peer {

/// Bytes that are allocated now, in this process.
inline std::size_t allocated_bytes() {
  if constexpr (base::under_sanitizer) {
    return __sanitizer_get_current_allocated_bytes();
  } else {
    const struct mallinfo2 use = mallinfo2();
    return use.uordblks + use.hblkhd;
  }
}

}  // namespace duet::peer
