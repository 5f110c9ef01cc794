#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

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

/// The same for one text from front to back, 64 bytes at a time: what a small message costs is the
/// number of its strings, and here the end of a short one is found in a few instructions.
class StringStops {
 public:
  static constexpr std::ptrdiff_t width = 64;

  StringStops(const char* begin, const char* end) : begin_(begin), end_(end), window_(begin) {}

  /// The first stop at or behind `at`, or the end. Going back with `at` is allowed, at the price of another look.
  const char* next(const char* at) {
    for (;;) {
      const std::ptrdiff_t offset = at - window_;
      if (offset >= 0 && offset < looked_at_) {
        const std::uint64_t stops = stops_ >> offset;
        if (stops != 0) return at + std::countr_zero(stops);
        at = window_ + looked_at_;
      }
      if (at >= end_) return end_;
      look_at(at);
    }
  }

 private:
  void look_at(const char* at) {
    window_ = at;
    looked_at_ = std::min(end_ - at, width);
#ifdef __SSE2__
    if (end_ - at >= width) {
      stops_ = block(at) | block(at + 16) << 16U | block(at + 32) << 32U | block(at + 48) << 48U;
    } else if (end_ - begin_ >= 16) {
      look_at_rest();
    } else {
      look_at_few();
    }
#else
    look_at_few();
#endif
  }

  void look_at_few() {
    stops_ = 0;
    for (std::ptrdiff_t i = 0; i < looked_at_; ++i) {
      stops_ |= std::uint64_t{stops_string[static_cast<unsigned char>(window_[i])]} << i;
    }
  }

#ifdef __SSE2__
  // The last bytes are looked at together with some before them.
  void look_at_rest() {
    const auto left = static_cast<std::size_t>(end_ - window_);
    if (left < 16) {
      stops_ = block(end_ - 16) >> (16 - left);
      return;
    }
    stops_ = block(end_ - 16) << (left - 16);
    for (std::size_t done = 0; done + 16 < left; done += 16) stops_ |= block(window_ + done) << done;
  }

  static std::uint64_t block(const char* at) {
    const __m128i chunk = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    const __m128i stop = _mm_or_si128(
        _mm_or_si128(_mm_cmpeq_epi8(chunk, _mm_set1_epi8('"')), _mm_cmpeq_epi8(chunk, _mm_set1_epi8('\\'))),
        _mm_cmplt_epi8(chunk, _mm_set1_epi8(0x20)));
    return static_cast<unsigned>(_mm_movemask_epi8(stop));
  }
#endif

  [[maybe_unused]] const char* begin_;
  const char* end_;
  const char* window_;            // stops_ is about the bytes from here on,
  std::ptrdiff_t looked_at_ = 0;  // so many of them
  std::uint64_t stops_ = 0;
};

}  // namespace duet::rpc
