#pragma once

#include <malloc.h>

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DUET_TEST_UNDER_SANITIZER
#include <sanitizer/allocator_interface.h>
#endif
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
