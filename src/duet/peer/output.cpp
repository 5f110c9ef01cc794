#include "duet/peer/output.h"

#include <utility>

namespace duet::peer {
namespace {

constexpr std::size_t portion_bytes = 256 * 1024;
constexpr std::size_t kept_bytes = 1024;  // an idle connection's buffer

}  // namespace

void Output::add(const rpc::Pieces& pieces) {
  constexpr std::size_t frame_bytes = 48;  // more than any header or line end
  const std::size_t before = last_.size();
  const std::size_t wanted = before + pieces.size() + frame_bytes;
  if (wanted > last_.capacity()) last_.reserve(before == 0 && usual_ > wanted ? usual_ : wanted);
  encoder_.begin(last_, pieces.size());
  const std::size_t body_at = last_.size();
  pieces.append_to(last_);
  encoder_.end(last_, body_at);
  size_ += last_.size() - before;
  if (last_.size() >= portion_bytes) portions_.push_back(std::exchange(last_, {}));
}

transport::Moved Output::write_to(transport::Channel& channel) {
  while (size_ > 0) {
    const std::string& front = portions_.empty() ? last_ : portions_.front();
    const transport::Moved moved = channel.write(std::string_view(front).substr(sent_));
    if (moved.state != transport::Moved::State::some) return moved;
    sent_ += moved.count;
    size_ -= moved.count;
    if (sent_ == front.size()) drop_front_portion();
  }
  return {transport::Moved::State::some};
}

void Output::drop_front_portion() {
  sent_ = 0;
  if (!portions_.empty()) {
    portions_.pop_front();
    return;
  }
  usual_ = last_.size();
  if (last_.capacity() > kept_bytes) {
    last_ = std::string();
  } else {
    last_.clear();
  }
}

void Output::clear() {
  portions_.clear();
  last_ = std::string();
  sent_ = size_ = 0;
}

}  // namespace duet::peer
