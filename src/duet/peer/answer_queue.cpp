#include "duet/peer/answer_queue.h"

namespace duet::peer {

AnswerQueue::Place& AnswerQueue::reserve(std::size_t held) {
  constexpr std::size_t node_bytes = 32;
  Place& place = places_.emplace_back();
  place.size = sizeof(Place) + node_bytes + held;
  size_ += place.size;
  return place;
}

void AnswerQueue::fill(Place& place, std::string answer) {
  place.known = true;
  place.answer = std::move(answer);
  size_ += place.answer.size();
  release_known();
}

void AnswerQueue::keep(const rpc::EncodedMessage& answer) {
  std::string text;
  answer.append_to(text);
  fill(reserve(), std::move(text));
}

void AnswerQueue::clear() {
  places_.clear();
  size_ = 0;
}

void AnswerQueue::release_known() {
  while (!places_.empty() && places_.front().known) {
    const std::string answer = std::move(places_.front().answer);
    size_ -= places_.front().size + answer.size();
    places_.pop_front();
    ++given_;
    if (!answer.empty()) sink_.add(rpc::encoded(answer));
  }
}

}  // namespace duet::peer
