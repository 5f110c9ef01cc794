#include "duet/framing/block_pool.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace duet::framing {
namespace {

char* resized(char* data, std::size_t size) {
  auto* got = static_cast<char*>(std::realloc(data, size));
  if (got == nullptr) throw std::bad_alloc();
  return got;
}

}  // namespace

// The smallest kept block that is large enough, else the largest made larger: growing a large block
// only maps more pages, it copies nothing.
Block BlockPool::take(std::size_t size) {
  if (size < large || kept_bytes_ == 0) return {resized(nullptr, size), size};
  ++uses_;
  const auto better = [size](const Block& a, const Block& b) {
    const bool a_fits = a.capacity >= size;
    const bool b_fits = b.capacity >= size;
    if (a_fits != b_fits) return a_fits;
    return a_fits ? a.capacity < b.capacity : a.capacity > b.capacity;
  };
  Block& best = *std::min_element(kept_.begin(), kept_.end(), better);
  Block block = std::exchange(best, {});
  kept_bytes_ -= block.capacity;
  if (block.capacity < size) block = {resized(block.data, size), size};
  return block;
}

void BlockPool::grow(Block& block, std::size_t size, std::size_t used) {
  if (block.capacity >= large || size < large) {
    block = {resized(block.data, size), size};
    return;
  }
  const Block larger = take(size);
  if (used > 0) std::memcpy(larger.data, block.data, used);
  give(block);
  block = larger;
}

void BlockPool::give(Block& block) {
  const Block returned = std::exchange(block, {});
  const auto place = std::find_if(kept_.begin(), kept_.end(), [](const Block& kept) { return kept.data == nullptr; });
  if (returned.capacity < large || place == kept_.end() || kept_bytes_ + returned.capacity > most_kept) {
    std::free(returned.data);
    return;
  }
  ++uses_;
  *place = returned;
  kept_bytes_ += returned.capacity;
}

void BlockPool::trim() {
  for (Block& block : kept_) std::free(std::exchange(block, {}).data);
  kept_bytes_ = 0;
}

}  // namespace duet::framing
