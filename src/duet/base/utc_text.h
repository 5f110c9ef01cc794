#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "duet/api.h"

namespace duet::base {

/// Writes times as `2026-11-15T09:30:00.123Z`. Keeps the text of the last second, since times tend to come close
/// together; no locale, no time zone. One thread at a time.
class DUET_API UtcText {
 public:
  static constexpr std::size_t size = 24;

  void append(std::string& out, std::chrono::system_clock::time_point time);
  /// Where there is room for `size` characters.
  void write(char* to, std::chrono::system_clock::time_point time);

 private:
  std::int64_t second_ = std::numeric_limits<std::int64_t>::min();
  std::array<char, 20> second_text_{};
};

/// The same for one time.
DUET_API std::string utc_text(std::chrono::system_clock::time_point time);

}  // namespace duet::base
