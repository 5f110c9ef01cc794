#pragma once

#include <malloc.h>

#include <cstddef>

#include "duet/base/sanitizer_test.h"

#ifdef DUET_TEST_UNDER_SANITIZER
#include <sanitizer/allocator_interface.h>
#endif

namespace duet::peer {

/// Bytes that are allocated now, in this process.
inline std::size_t allocated_bytes() {
#ifdef DUET_TEST_UNDER_SANITIZER
  return __sanitizer_get_current_allocated_bytes();
#else
  const struct mallinfo2 use = mallinfo2();
  return use.uordblks + use.hblkhd;
#endif
}

}  // namespace duet::peer
