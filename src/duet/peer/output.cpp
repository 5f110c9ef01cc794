#include "duet/peer/output.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace duet::peer {
namespace {

constexpr std::size_t portion_bytes = 256 * 1024;
constexpr std::size_t kept_bytes = 1024;  // an idle connection's buffer
constexpr std::size_t most_usual = 64 * 1024;

std::size_t most_bytes(const rpc::Pieces& pieces) { return pieces.size() + framing::Encoder::most_bytes; }

// Returns how many bytes that were.
std::size_t write_frame(framing::Encoder& encoder, const rpc::Pieces& pieces, char* begin) {
  const std::size_t body_size = pieces.size();
  char* const body = begin + encoder.begin(begin, body_size);
  pieces.copy_to(body);
  const std::size_t payload = pieces.payload_size();
  char* const body_end = body + body_size;
  char* const end = body_end + encoder.end(body_end, {body_end - 1 - payload, payload});
  return static_cast<std::size_t>(end - begin);
}

}  // namespace

std::string framed(framing::Encoder& encoder, const rpc::Pieces& pieces) {
  std::string message(most_bytes(pieces), '\0');
  message.resize(write_frame(encoder, pieces, message.data()));
  return message;
}

char* Output::make_room(std::size_t more) {
  if (last_.block.capacity - last_.size < more) {
    const std::size_t wanted =
        last_.size == 0 ? std::max(more, usual_) : std::max(last_.size + more, last_.block.capacity * 2);
    pool_.grow(last_.block, wanted, last_.size);
  }
  return last_.block.data + last_.size;
}

void Output::add(const rpc::Pieces& pieces) {
  char* const begin = make_room(most_bytes(pieces));
  take(write_frame(encoder_, pieces, begin));
}

void Output::add_framed(std::string_view message) {
  std::memcpy(make_room(message.size()), message.data(), message.size());
  take(message.size());
}

void Output::take(std::size_t added) {
  last_.size += added;
  size_ += added;
  if (last_.size >= portion_bytes) portions_.push_back(std::exchange(last_, {}));
}

transport::Moved Output::write_to(transport::Channel& channel) {
  while (size_ > 0) {
    const Portion& front = portions_.empty() ? last_ : portions_.front();
    const transport::Moved moved = channel.write({front.block.data + sent_, front.size - sent_});
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
    pool_.give(portions_.front().block);
    portions_.pop_front();
    return;
  }
  usual_ = std::min(last_.size, most_usual);
  last_.size = 0;
  if (last_.block.capacity > kept_bytes) pool_.give(last_.block);
}

void Output::clear() {
  for (Portion& portion : portions_) pool_.give(portion.block);
  portions_.clear();
  pool_.give(last_.block);
  last_.size = sent_ = size_ = 0;
}

}  // namespace duet::peer
