#pragma once

#include <array>
#include <cstddef>

namespace duet::framing {

/// A piece of memory, owned by whoever holds it until it is given back to a pool.
struct Block {
  char* data = nullptr;
  std::size_t capacity = 0;
};

/// Where buffers get their memory. A few large blocks are kept for the next large message, because
/// most of what such a message costs is memory that is new to the process; trim() gives them back
/// to the system. Small blocks come and go as with malloc. For one thread.
class BlockPool {
 public:
  static constexpr std::size_t large = 256U * 1024;
  static constexpr std::size_t most_kept = 64U * 1024 * 1024;

  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool() { trim(); }

  Block take(std::size_t size);
  /// At least `size`, the first `used` bytes as they were.
  void grow(Block& block, std::size_t size, std::size_t used);
  void give(Block& block);

  bool keeps_any() const { return kept_bytes_ > 0; }
  /// Tells whether the pool was used between two looks at it.
  std::size_t uses() const { return uses_; }
  void trim();
  bool trim_is_planned = false;  ///< for whoever trims: one plan is enough

 private:
  std::array<Block, 4> kept_{};
  std::size_t kept_bytes_ = 0;
  std::size_t uses_ = 0;
};

}  // namespace duet::framing
