#include "duet/framing/whole.h"

#include <utility>

namespace duet::framing {

void WholeDecoder::feed(std::string_view bytes) {
  message_ = bytes;
  is_new_ = true;
  ++messages_;
}

std::optional<Frame> WholeDecoder::next() {
  std::optional<Frame> frame;
  if (!std::exchange(is_new_, false)) return frame;
  frame.emplace();
  if (message_.size() > max_message_) {
    frame->fault = Fault::oversize;
  } else {
    frame->body = message_;
  }
  return frame;
}

}  // namespace duet::framing
