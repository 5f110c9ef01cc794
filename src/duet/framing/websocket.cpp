#include "duet/framing/websocket.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace duet::framing {
namespace {

struct Opcode {
  enum Value : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };
};

constexpr std::uint8_t last_frame = 0x80;
constexpr std::uint8_t reserved_bits = 0x70;
constexpr std::uint8_t opcode_bits = 0x0F;
constexpr std::uint8_t control_bit = 0x08;
constexpr std::uint8_t masked = 0x80;
constexpr std::uint8_t length_bits = 0x7F;
constexpr std::uint8_t two_bytes_follow = 126;
constexpr std::uint8_t eight_bytes_follow = 127;
constexpr std::size_t most_in_control = 125;
constexpr std::size_t mask_size = 4;

std::uint8_t byte_at(std::string_view bytes, std::size_t at) { return static_cast<std::uint8_t>(bytes[at]); }

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t number = 0;
  for (const char byte : bytes) number = number << 8U | static_cast<std::uint8_t>(byte);
  return number;
}

bool is_shortest(std::uint64_t length, std::size_t bytes) {
  if (bytes == 0) return true;
  if (bytes == 2) return length >= two_bytes_follow;
  return length > 0xFFFF && length >> 63U == 0;
}

bool may_be_sent(std::uint64_t close_code) {
  return (close_code >= 1000 && close_code <= 1003) || (close_code >= 1007 && close_code <= 1014) ||
         (close_code >= 3000 && close_code <= 4999);
}

std::optional<Fault> fault_of_close(std::string_view payload) {
  if (payload.empty()) return std::nullopt;
  if (payload.size() == 1 || !may_be_sent(big_endian(payload.substr(0, 2)))) return Fault::protocol_error;
  return is_utf8(payload.substr(2)) ? std::nullopt : std::optional(Fault::not_utf8);
}

// The mask for what follows behind so many bytes.
std::uint32_t turned(std::uint32_t mask, std::size_t bytes) {
  const int bits = static_cast<int>(bytes % mask_size) * 8;
  return std::endian::native == std::endian::little ? std::rotr(mask, bits) : std::rotl(mask, bits);
}

// To the same place or to one before it; groups are read whole before they are written, so that these may overlap.
void unmask(char* to, const char* from, std::size_t count, std::uint32_t mask) {
  const std::uint64_t wide = std::uint64_t{mask} << 32U | mask;
  std::uint64_t four[4];
  for (; count >= sizeof four; count -= sizeof four, to += sizeof four, from += sizeof four) {
    std::memcpy(four, from, sizeof four);
    for (std::uint64_t& each : four) each ^= wide;
    std::memcpy(to, four, sizeof four);
  }
  std::uint64_t one = 0;
  for (; count >= sizeof one; count -= sizeof one, to += sizeof one, from += sizeof one) {
    std::memcpy(&one, from, sizeof one);
    one ^= wide;
    std::memcpy(to, &one, sizeof one);
  }
  char key[sizeof wide];
  std::memcpy(key, &wide, sizeof wide);
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<char>(from[i] ^ key[i]);
}

std::string control_frame(Opcode::Value opcode, std::string_view payload) {
  std::string frame;
  frame += static_cast<char>(last_frame | opcode);
  frame += static_cast<char>(payload.size());
  return frame += payload;
}

}  // namespace

struct WebSocketDecoder::Header {
  std::uint8_t opcode;
  bool is_last;
  std::size_t size;
  std::uint64_t length;
  std::uint32_t mask;
};

// What may not be changed has to be copied.
void WebSocketDecoder::feed(std::string_view bytes) {
  in_.feed(bytes);
  in_.keep();
}

// Nothing is held but the decoder's own memory and what may be changed.
char* WebSocketDecoder::bytes() { return const_cast<char*>(in_.view().data()); }

std::optional<Frame> WebSocketDecoder::next() {
  std::optional<Frame> frame;
  while (!frame && (in_payload_ ? read_payload(frame) : read_header(frame))) {
  }
  if (!frame) keep_rest();
  return frame;
}

// This and the functions below are false when more bytes are needed. Each byte is judged before the next, so that the
// verdict does not depend on how they come.
bool WebSocketDecoder::read_header(std::optional<Frame>& frame) {
  const std::string_view rest = in_.view().substr(at_);
  if (rest.empty()) return false;
  const std::uint8_t first = byte_at(rest, 0);
  if (const std::optional<Fault> fault = fault_of_opcode(first)) return fail(*fault, frame);
  if (rest.size() < 2) return false;
  const std::uint8_t second = byte_at(rest, 1);
  const bool is_masked = (second & masked) != 0;
  const std::uint8_t short_length = second & length_bits;
  const bool is_long_control = (first & control_bit) != 0 && short_length > most_in_control;
  if (!failed_ && (!is_masked || is_long_control)) return fail(Fault::protocol_error, frame);
  const std::size_t length_size = short_length < two_bytes_follow ? 0U : short_length < eight_bytes_follow ? 2U : 8U;
  const std::size_t mask_at = 2 + length_size;
  if (rest.size() < mask_at) return false;
  const std::uint64_t length = length_size == 0 ? short_length : big_endian(rest.substr(2, length_size));
  if (!failed_ && !is_shortest(length, length_size)) return fail(Fault::protocol_error, frame);
  const std::size_t size = mask_at + (is_masked ? mask_size : 0);
  if (rest.size() < size) return false;
  std::uint32_t mask = 0;
  if (is_masked) std::memcpy(&mask, rest.data() + mask_at, mask_size);
  return begin_frame({.opcode = static_cast<std::uint8_t>(first & opcode_bits),
                      .is_last = (first & last_frame) != 0,
                      .size = size,
                      .length = length,
                      .mask = mask},
                     frame);
}

std::optional<Fault> WebSocketDecoder::fault_of_opcode(std::uint8_t first) const {
  const bool inside_message = message_ != Message::none;
  if (failed_ || (first == (last_frame | Opcode::text) && !inside_message)) return std::nullopt;
  if ((first & reserved_bits) != 0) return Fault::protocol_error;
  const bool is_last = (first & last_frame) != 0;
  bool is_proper = false;
  switch (first & opcode_bits) {
    case Opcode::continuation:
      is_proper = inside_message;
      break;
    case Opcode::text:
      is_proper = !inside_message;
      break;
    case Opcode::binary:
      if (!inside_message) return Fault::binary_message;
      break;
    case Opcode::close:
    case Opcode::ping:
    case Opcode::pong:
      is_proper = is_last;
      break;
    default:
      break;
  }
  return is_proper ? std::nullopt : std::optional(Fault::protocol_error);
}

bool WebSocketDecoder::begin_frame(const Header& header, std::optional<Frame>& frame) {
  if (!failed_ && (header.opcode & control_bit) != 0) return read_control(header, frame);
  at_ += header.size;
  left_ = header.length;
  mask_ = header.mask;
  is_last_ = header.is_last;
  in_payload_ = true;
  if (!failed_) return begin_data(header, frame);
  if (header.opcode == Opcode::close) {
    control_ = {.kind = Control::Kind::close};
    frame.emplace();
  }
  return true;
}

bool WebSocketDecoder::begin_data(const Header& header, std::optional<Frame>& frame) {
  if (message_ == Message::none) {
    message_ = Message::kept;
    message_begin_ = message_end_ = at_;
  }
  const std::size_t size = message_end_ - message_begin_;
  if (message_ == Message::kept && header.length > max_message_ - size) {
    oversize_bytes_ = size + header.length;
    skip_message();
    frame.emplace().fault = Fault::oversize;
  }
  return true;
}

bool WebSocketDecoder::read_control(const Header& header, std::optional<Frame>& frame) {
  const auto length = static_cast<std::size_t>(header.length);
  if (in_.view().size() - at_ < header.size + length) return false;
  char* const begin = bytes() + at_ + header.size;
  unmask(begin, begin, length, header.mask);
  const std::string_view payload(begin, length);
  if (header.opcode == Opcode::close) {
    if (const std::optional<Fault> fault = fault_of_close(payload)) return fail(*fault, frame);
  }
  at_ += header.size + length;
  if (header.opcode == Opcode::pong) return true;
  control_ = {.kind = header.opcode == Opcode::ping ? Control::Kind::ping : Control::Kind::close, .payload = payload};
  frame.emplace();
  return true;
}

bool WebSocketDecoder::read_payload(std::optional<Frame>& frame) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, in_.view().size() - at_));
  char* const from = bytes() + at_;
  if (message_ == Message::kept) {
    unmask(bytes() + message_end_, from, count, mask_);
    message_end_ += count;
  } else if (message_ == Message::skipped) {
    unmask(from, from, count, mask_);
    skipped_is_utf8_ = skipped_is_utf8_ && skipped_text_.add({from, count});
  }
  at_ += count;
  left_ -= count;
  mask_ = turned(mask_, count);
  if (message_ == Message::skipped && !skipped_is_utf8_) return fail(Fault::not_utf8, frame);
  return left_ == 0 && end_frame(frame);
}

bool WebSocketDecoder::end_frame(std::optional<Frame>& frame) {
  in_payload_ = false;
  if (message_ == Message::none || !is_last_) return true;
  ++messages_;
  if (std::exchange(message_, Message::none) == Message::kept) {
    frame.emplace().body = in_.view().substr(message_begin_, message_end_ - message_begin_);
  } else if (!skipped_text_.is_whole()) {
    return fail(Fault::not_utf8, frame);
  }
  return true;
}

// What is wrong with a Close is found again by its opcode: it is a Close all the same.
bool WebSocketDecoder::fail(Fault fault, std::optional<Frame>& frame) {
  failed_ = true;
  message_ = Message::none;
  frame.emplace().fault = fault;
  return true;
}

std::optional<Fault> WebSocketDecoder::reject() {
  if (is_utf8(in_.view().substr(message_begin_, message_end_ - message_begin_))) return std::nullopt;
  failed_ = true;
  return Fault::not_utf8;
}

void WebSocketDecoder::skip_message() {
  message_ = Message::skipped;
  skipped_text_ = {};
  skipped_is_utf8_ = skipped_text_.add(in_.view().substr(message_begin_, message_end_ - message_begin_));
}

// Between two calls of next() what is held is the message so far and what was not enough to be looked at.
void WebSocketDecoder::keep_rest() {
  const bool is_kept = message_ == Message::kept;
  const std::size_t size = is_kept ? message_end_ - message_begin_ : 0;
  const std::size_t done = is_kept ? at_ - message_end_ : 0;
  in_.drop(is_kept ? message_begin_ : at_);
  in_.keep();
  if (done > 0) in_.cut(size, done);
  message_begin_ = 0;
  message_end_ = at_ = size;
}

void WebSocketDecoder::drop_partial() {
  if (message_ != Message::kept) return;
  skip_message();
  keep_rest();
}

std::size_t WebSocketEncoder::begin(char* at, std::size_t body_size) {
  at[0] = static_cast<char>(last_frame | Opcode::text);
  if (body_size < two_bytes_follow) {
    at[1] = static_cast<char>(body_size);
    return 2;
  }
  const std::size_t length_size = body_size <= 0xFFFF ? 2 : 8;
  at[1] = static_cast<char>(length_size == 2 ? two_bytes_follow : eight_bytes_follow);
  std::uint64_t rest = body_size;
  for (std::size_t i = length_size; i > 0; --i, rest >>= 8U) at[1 + i] = static_cast<char>(rest & 0xFFU);
  return 2 + length_size;
}

std::string ping_frame() { return control_frame(Opcode::ping, {}); }
std::string pong_frame(std::string_view payload) { return control_frame(Opcode::pong, payload); }
std::string close_frame(std::string_view payload) { return control_frame(Opcode::close, payload); }

std::string close_payload(std::uint16_t code, std::string_view reason) {
  reason = reason.substr(0, most_in_control - 2);
  while (!is_utf8(reason)) reason.remove_suffix(1);
  const std::string both{static_cast<char>(code >> 8U), static_cast<char>(code & 0xFFU)};
  return both + std::string(reason);
}

}  // namespace duet::framing
