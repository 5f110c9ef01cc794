#include "duet/peer/output.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace duet::peer {
namespace {

constexpr std::size_t portion_bytes = 256 * 1024;
constexpr std::size_t kept_bytes = 1024;  // an idle connection's buffer

}  // namespace

void Output::Portion::make_room(std::size_t more, std::size_t usual) {
  if (capacity - size >= more) return;
  const std::size_t wanted = size == 0 ? std::max(more, usual) : std::max(size + more, capacity * 2);
  auto grown = std::make_unique_for_overwrite<char[]>(wanted);
  if (size > 0) std::memcpy(grown.get(), bytes.get(), size);
  bytes = std::move(grown);
  capacity = wanted;
}

void Output::add(const rpc::Pieces& pieces) {
  const std::size_t body_size = pieces.size();
  last_.make_room(body_size + framing::Encoder::most_bytes, usual_);
  char* const begin = last_.bytes.get() + last_.size;
  char* const body = begin + encoder_.begin(begin, body_size);
  pieces.copy_to(body);
  const std::size_t payload = pieces.payload_size();
  char* const body_end = body + body_size;
  char* const end = body_end + encoder_.end(body_end, {body_end - 1 - payload, payload});
  const auto added = static_cast<std::size_t>(end - begin);
  last_.size += added;
  size_ += added;
  if (last_.size >= portion_bytes) portions_.push_back(std::exchange(last_, {}));
}

transport::Moved Output::write_to(transport::Channel& channel) {
  while (size_ > 0) {
    const Portion& front = portions_.empty() ? last_ : portions_.front();
    const transport::Moved moved = channel.write({front.bytes.get() + sent_, front.size - sent_});
    if (moved.state != transport::Moved::State::some) return moved;
    sent_ += moved.count;
    size_ -= moved.count;
    if (sent_ == front.size) drop_front_portion();
  }
  return {transport::Moved::State::some};
}

void Output::drop_front_portion() {
  sent_ = 0;
  if (!portions_.empty()) {
    portions_.pop_front();
    return;
  }
  usual_ = last_.size;
  last_.size = 0;
  if (last_.capacity > kept_bytes) last_ = {};
}

void Output::clear() {
  portions_.clear();
  last_ = {};
  sent_ = size_ = 0;
}

}  // namespace duet::peer
