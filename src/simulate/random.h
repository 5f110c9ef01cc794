#pragma once

#include <cstddef>
#include <cstdint>

namespace duet::simulate {

/// Where all chance of a simulation comes from: the same seed gives the same numbers, with any compiler and library
/// (SplitMix64). Not for secrets.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
    return z ^ (z >> 31U);
  }
  /// From 0 to `bound` - 1; `bound` is at least 1. That small numbers come a little more often does not matter here.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  std::uint64_t between(std::uint64_t least, std::uint64_t most) { return least + below(most - least + 1); }
  /// Once in so many times.
  bool one_in(std::uint64_t times) { return below(times) == 0; }
  /// A source of its own, so that more questions to the one do not change the answers of the other.
  Random fork() { return Random(next()); }

 private:
  std::uint64_t state_;
};

}  // namespace duet::simulate
