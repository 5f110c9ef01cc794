#pragma once

#include <cstdint>
#include <string>

#include "duet/framing/frame.h"
#include "duet/framing/input_buffer.h"
#include "duet/framing/utf8_check.h"

namespace duet::framing {

/// Cuts what a WebSocket's client sends (RFC 6455, no extensions) into text messages.
///
/// A message in one frame that is whole in bytes which may be changed is unmasked where it stands; of others the
/// fragments are put together, unmasked as they come. One that is too large is told as soon as its length is known and
/// skipped in constant memory. That a text is UTF-8 is seen to by whoever reads the JSON, and by reject(); of one that
/// is skipped it is checked here. Behind a fault of the protocol, and behind a text that is not UTF-8, nothing comes
/// but the peer's Close.
class WebSocketDecoder final : public Decoder {
 public:
  explicit WebSocketDecoder(std::size_t max_message = max_body) : max_message_(max_message), in_(own_pool_) {}
  WebSocketDecoder(std::size_t max_message, BlockPool& pool) : max_message_(max_message), in_(pool) {}

  void feed(std::string_view bytes) override;
  void feed_in_place(std::span<char> bytes) override { in_.feed({bytes.data(), bytes.size()}); }
  std::span<char> room() override { return in_.room(); }
  void commit(std::size_t count) override { in_.commit(count); }
  std::optional<Frame> next() override;
  std::optional<Fault> reject() override;
  std::optional<Fault> finish() override { return std::nullopt; }
  Control control() const override { return control_; }
  Extent fault_extent() const override { return {.bytes = oversize_bytes_, .announced = {}}; }
  bool is_empty() const override { return in_.empty() && message_ == Message::none && !in_payload_; }
  bool inside_frame() const override { return message_ == Message::kept; }
  std::uint64_t frames_begun() const override { return messages_; }
  std::string_view held() const override { return in_.view(); }
  Extent partial_extent() const override { return {.bytes = message_end_ - message_begin_, .announced = {}}; }
  void drop_partial() override;

 private:
  enum class Message : std::uint8_t { none, kept, skipped };  // what is under way
  struct Header;

  bool read_header(std::optional<Frame>& frame);
  std::optional<Fault> fault_of_opcode(std::uint8_t first) const;
  bool begin_frame(const Header& header, std::optional<Frame>& frame);
  bool begin_data(const Header& header, std::optional<Frame>& frame);
  bool read_control(const Header& header, std::optional<Frame>& frame);
  bool read_payload(std::optional<Frame>& frame);
  bool end_frame(std::optional<Frame>& frame);
  bool fail(Fault fault, std::optional<Frame>& frame);
  void skip_message();
  void keep_rest();
  char* bytes();

  std::size_t max_message_;
  BlockPool own_pool_;  // for a decoder that shares none
  InputBuffer in_;
  std::uint64_t messages_ = 0;

  // All of these count from the start of what is held: the message as far as it has come, then nothing, then what has
  // not been looked at.
  std::size_t message_begin_ = 0;
  std::size_t message_end_ = 0;
  std::size_t at_ = 0;

  Message message_ = Message::none;
  bool in_payload_ = false;
  bool is_last_ = false;    // frame of its message
  bool failed_ = false;     // only the peer's Close is looked for
  std::uint64_t left_ = 0;  // of the payload
  std::uint32_t mask_ = 0;  // for the next four bytes of it
  Utf8Check skipped_text_;
  bool skipped_is_utf8_ = true;
  std::uint64_t oversize_bytes_ = 0;
  Control control_;
};

/// A text message in one frame.
class WebSocketEncoder final : public Encoder {
 public:
  std::size_t begin(char* at, std::size_t body_size) override;
  std::size_t end(char*, std::span<char>) override { return 0; }
};

/// Control frames as a server sends them. The payload is at most 125 bytes.
std::string ping_frame();
std::string pong_frame(std::string_view payload);
std::string close_frame(std::string_view payload);
/// The payload of a Close; a reason is cut where it does not fit.
std::string close_payload(std::uint16_t code, std::string_view reason);

}  // namespace duet::framing
