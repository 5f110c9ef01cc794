#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace duet::task {

/// How long a task waits after its attempts have failed so often: a second, twice that with each further one, five
/// minutes at most; a quarter more or less, as `chance` (0 to 1) has it, so that tasks which failed together do not
/// come back together.
inline std::chrono::milliseconds retry_delay(std::uint32_t failures, double chance) {
  constexpr double most = 300'000;
  constexpr std::uint32_t doublings_to_most = 9;
  const double plain = 1000.0 * static_cast<double>(1U << std::min(failures - 1, doublings_to_most));
  const double spread = std::min(plain, most) * (0.75 + 0.5 * chance);
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::min(spread, most)));
}

}  // namespace duet::task
