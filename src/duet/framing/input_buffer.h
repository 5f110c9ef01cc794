#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "duet/framing/block_pool.h"

namespace duet::framing {

/// The bytes a decoder has not used yet. What is fed is borrowed as long as possible, so that whole
/// frames are never copied; only what is left over is kept. An empty buffer owns no memory.
class InputBuffer {
 public:
  explicit InputBuffer(BlockPool& pool) : pool_(pool) {}
  InputBuffer(const InputBuffer&) = delete;
  InputBuffer& operator=(const InputBuffer&) = delete;
  ~InputBuffer() { release(); }

  void feed(std::string_view bytes);
  std::string_view view() const {
    return borrowed_.empty() ? std::string_view(block_.data + begin_, end_ - begin_) : borrowed_;
  }
  void drop(std::size_t count) {
    if (borrowed_.empty()) {
      drop_owned(count);
    } else {
      borrowed_.remove_prefix(count);
    }
  }
  void keep();  ///< owns what was borrowed

  std::span<char> room();  ///< behind what is owned; empty when nothing is
  void commit(std::size_t count) { end_ += count; }

 private:
  void append(std::string_view bytes);
  void drop_owned(std::size_t count);
  void reserve(std::size_t more);
  void release();

  BlockPool& pool_;
  std::string_view borrowed_;
  Block block_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

}  // namespace duet::framing
