#pragma once

#include <array>
#include <cstddef>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace duet::rpc {

/// Finds where the inside of a JSON string needs a closer look: a quote, a backslash, a control
/// character or a byte of a multi-byte character. Returns `end` when there is none.
/// The scalar version is the definition; the SSE2 one must agree with it.
inline constexpr std::array<bool, 256> stops_string = [] {
  std::array<bool, 256> stops{};
  for (std::size_t byte = 0; byte < stops.size(); ++byte) {
    stops[byte] = byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\';
  }
  return stops;
}();

inline const char* find_string_stop_scalar(const char* at, const char* end) {
  while (at != end && !stops_string[static_cast<unsigned char>(*at)]) ++at;
  return at;
}

#ifdef __SSE2__
inline const char* find_string_stop_sse2(const char* at, const char* end) {
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i space = _mm_set1_epi8(0x20);
  while (end - at >= 16) {
    const __m128i chunk = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    // Compared as signed bytes, everything below a space is a control character or has its high bit set.
    const __m128i stop = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(chunk, quote), _mm_cmpeq_epi8(chunk, backslash)),
                                      _mm_cmplt_epi8(chunk, space));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(stop));
    if (mask != 0) return at + __builtin_ctz(mask);
    at += 16;
  }
  return find_string_stop_scalar(at, end);
}
#endif

inline const char* find_string_stop(const char* at, const char* end) {
#ifdef __SSE2__
  return find_string_stop_sse2(at, end);
#else
  return find_string_stop_scalar(at, end);
#endif
}

}  // namespace duet::rpc
