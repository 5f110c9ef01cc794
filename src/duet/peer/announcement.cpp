#include "duet/peer/announcement.h"

#include <array>
#include <cstring>

#include "duet/peer/output.h"
#include "duet/rpc/json_text.h"

namespace duet::peer {
namespace {

constexpr std::size_t room = framing::Encoder::most_bytes;  // on each side

}  // namespace

Announcement::Announcement(std::string_view method, const rpc::Json& params)
    : Announcement(rpc::encode_notification(rpc::quoted(method), text_of_params(params))) {}

Announcement::Announcement(const rpc::EncodedMessage& message)
    : bytes_(message.size() + 2 * room, '\0'), payload_size_(message.payload_size()) {
  message.copy_to(bytes_.data() + room);
}

void Announcement::frame(framing::Encoder& encoder, Protocol::Framing framing) {
  const std::size_t text_size = bytes_.size() - 2 * room;
  char* const text = bytes_.data() + room;
  char* const text_end = text + text_size;
  std::array<char, room> before;
  const std::size_t before_size = encoder.begin(before.data(), text_size);
  std::memcpy(text - before_size, before.data(), before_size);
  const std::size_t behind_size = encoder.end(text_end, {text_end - 1 - payload_size_, payload_size_});
  framing_ = framing;
  begin_ = room - before_size;
  size_ = before_size + text_size + behind_size;
}

}  // namespace duet::peer
