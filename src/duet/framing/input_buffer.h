#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "duet/framing/block_pool.h"

namespace duet::framing {

/// Where the next one is; npos: nowhere. Faster than string_view::find, which checks more.
inline std::size_t find_newline(std::string_view text, std::size_t from) {
  const void* hit = from < text.size() ? std::memchr(text.data() + from, '\n', text.size() - from) : nullptr;
  return hit == nullptr ? std::string_view::npos
                        : static_cast<std::size_t>(static_cast<const char*>(hit) - text.data());
}

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
  bool empty() const { return borrowed_.empty() && begin_ == end_; }
  void drop(std::size_t count) {
    if (borrowed_.empty()) {
      drop_owned(count);
    } else {
      borrowed_.remove_prefix(count);
    }
  }
  void keep();  ///< owns what was borrowed
  /// Takes bytes out of the middle of what is owned.
  void cut(std::size_t at, std::size_t count);

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
