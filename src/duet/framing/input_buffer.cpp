#include "duet/framing/input_buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace duet::framing {
namespace {

constexpr std::size_t first_capacity = 4096;
constexpr std::size_t largest_read = 256U * 1024;

}  // namespace

void InputBuffer::feed(std::string_view bytes) {
  keep();
  if (begin_ == end_) {
    borrowed_ = bytes;
  } else {
    append(bytes);
  }
}

void InputBuffer::keep() {
  if (!borrowed_.empty()) append(std::exchange(borrowed_, {}));
}

void InputBuffer::append(std::string_view bytes) {
  if (bytes.empty()) return;
  reserve(bytes.size());
  std::memcpy(block_.data + end_, bytes.data(), bytes.size());
  end_ += bytes.size();
}

void InputBuffer::cut(std::size_t at, std::size_t count) {
  char* const hole = block_.data + begin_ + at;
  std::memmove(hole, hole + count, end_ - begin_ - at - count);
  end_ -= count;
  drop_owned(0);
}

void InputBuffer::drop_owned(std::size_t count) {
  begin_ += count;
  if (begin_ == end_ && block_.data != nullptr) release();
}

std::span<char> InputBuffer::room() {
  if (begin_ == end_) return {};
  if (block_.capacity - end_ < first_capacity / 2) reserve(std::max(first_capacity, end_ - begin_));
  return {block_.data + end_, std::min(block_.capacity - end_, largest_read)};
}

void InputBuffer::reserve(std::size_t more) {
  if (block_.capacity - end_ >= more) return;
  const std::size_t held = end_ - begin_;
  if (begin_ > 0 && begin_ >= held) {
    std::memmove(block_.data, block_.data + begin_, held);
    begin_ = 0;
    end_ = held;
    if (block_.capacity - end_ >= more) return;
  }
  pool_.grow(block_, std::max({first_capacity, block_.capacity * 2, end_ + more}), end_);
}

void InputBuffer::release() {
  pool_.give(block_);
  begin_ = end_ = 0;
}

}  // namespace duet::framing
