#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "duet/api.h"
#include "duet/peer/protocol.h"
#include "duet/rpc/json.h"

namespace duet::rpc {
class EncodedMessage;
}  // namespace duet::rpc

namespace duet::peer {

/// A notification that goes to many, each in its own framing. The text is made once; what stands around it is a few
/// bytes, which are written again whenever the framing is another than the last one's. For one thread.
class DUET_API Announcement {
 public:
  /// For params see Conversation::call().
  Announcement(std::string_view method, const rpc::Json& params);
  template <rpc::TextType Text>
  Announcement(std::string_view method, const Text& params) = delete;
  explicit Announcement(const rpc::EncodedMessage& message);

  /// As it goes over the wire; valid until the next call. `encoder` is one of that framing.
  std::string_view framed(framing::Encoder& encoder, Protocol::Framing framing) {
    if (framing_ != framing) frame(encoder, framing);
    return std::string_view(bytes_).substr(begin_, size_);
  }

 private:
  void frame(framing::Encoder& encoder, Protocol::Framing framing);

  std::string bytes_;  // the text, with room on both sides
  std::size_t payload_size_;
  std::optional<Protocol::Framing> framing_;
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

}  // namespace duet::peer
