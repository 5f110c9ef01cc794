#include "duet/framing/input_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace duet::framing {
namespace {

constexpr std::size_t first_capacity = 4096;
constexpr std::size_t largest_read = 256 * 1024;

}  // namespace

InputBuffer::~InputBuffer() { std::free(data_); }

void InputBuffer::feed(std::string_view bytes) {
  if (bytes.empty()) return;
  keep();
  if (begin_ == end_) {
    borrowed_ = bytes;
    return;
  }
  reserve(bytes.size());
  std::memcpy(data_ + end_, bytes.data(), bytes.size());
  end_ += bytes.size();
}

void InputBuffer::drop(std::size_t count) {
  if (!borrowed_.empty()) {
    borrowed_.remove_prefix(count);
    return;
  }
  begin_ += count;
  if (begin_ == end_) release();
}

void InputBuffer::keep() {
  if (borrowed_.empty()) return;
  const std::string_view bytes = borrowed_;
  borrowed_ = {};
  reserve(bytes.size());
  std::memcpy(data_ + end_, bytes.data(), bytes.size());
  end_ += bytes.size();
}

std::span<char> InputBuffer::room() {
  if (begin_ == end_) return {};
  if (capacity_ - end_ < first_capacity / 2) reserve(std::max(first_capacity, end_ - begin_));
  return {data_ + end_, std::min(capacity_ - end_, largest_read)};
}

// realloc, because growing a large block by remapping its pages copies nothing.
void InputBuffer::reserve(std::size_t more) {
  if (capacity_ - end_ >= more) return;
  const std::size_t held = end_ - begin_;
  if (begin_ > 0 && begin_ >= held) {
    std::memmove(data_, data_ + begin_, held);
    begin_ = 0;
    end_ = held;
    if (capacity_ - end_ >= more) return;
  }
  const std::size_t wanted = std::max({first_capacity, capacity_ * 2, end_ + more});
  auto* grown = static_cast<char*>(std::realloc(data_, wanted));
  if (grown == nullptr) throw std::bad_alloc();
  data_ = grown;
  capacity_ = wanted;
}

void InputBuffer::release() {
  std::free(data_);
  data_ = nullptr;
  capacity_ = begin_ = end_ = 0;
}

}  // namespace duet::framing
