#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace duet::framing {

/// Frames as a client of a WebSocket sends them, right or wrong.
struct ClientFrame {
  std::uint8_t opcode = 1;
  std::string payload = {};
  bool is_last = true;
  std::uint8_t reserved = 0;  ///< three bits
  bool is_masked = true;
  int length_size = -1;                         ///< of its longer forms: 2 or 8; the shortest if not said
  std::optional<std::uint64_t> announced = {};  ///< instead of the payload's length
  std::array<std::uint8_t, 4> mask = {0x37, 0xFA, 0x21, 0x3D};

  std::string bytes() const {
    const std::uint64_t length = announced.value_or(payload.size());
    const int size = length_size >= 0 ? length_size : length < 126 ? 0 : length <= 0xFFFF ? 2 : 8;
    std::string frame;
    frame += static_cast<char>((is_last ? 0x80 : 0) | reserved << 4 | opcode);
    frame += static_cast<char>((is_masked ? 0x80 : 0) | (size == 0 ? static_cast<int>(length) : size == 2 ? 126 : 127));
    for (int i = size - 1; i >= 0; --i) frame += static_cast<char>(length >> (8 * i) & 0xFF);
    if (!is_masked) return frame + payload;
    for (const std::uint8_t each : mask) frame += static_cast<char>(each);
    for (std::size_t i = 0; i < payload.size(); ++i) frame += static_cast<char>(payload[i] ^ mask[i % 4]);
    return frame;
  }
  operator std::string() const { return bytes(); }  // NOLINT(google-explicit-constructor)
};

inline std::string text_frame(std::string payload) { return ClientFrame{.payload = std::move(payload)}; }
inline std::string first_frame(std::string payload) {
  return ClientFrame{.payload = std::move(payload), .is_last = false};
}
inline std::string next_frame(std::string payload) {
  return ClientFrame{.opcode = 0, .payload = std::move(payload), .is_last = false};
}
inline std::string last_frame(std::string payload) { return ClientFrame{.opcode = 0, .payload = std::move(payload)}; }
inline std::string ping(std::string payload = {}) { return ClientFrame{.opcode = 9, .payload = std::move(payload)}; }
inline std::string pong(std::string payload = {}) { return ClientFrame{.opcode = 10, .payload = std::move(payload)}; }
inline std::string close(std::string payload = {}) { return ClientFrame{.opcode = 8, .payload = std::move(payload)}; }
inline std::string close(std::uint16_t code, const std::string& reason = {}) {
  return close(std::string{static_cast<char>(code >> 8), static_cast<char>(code & 0xFF)} + reason);
}

/// By decoding every character.
inline bool is_utf8_slowly(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t size = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    if (size == 0 || at + size > text.size()) return false;
    std::uint32_t character = size == 1 ? lead : lead & (0xFFU >> (size + 1));
    for (std::size_t i = 1; i < size; ++i) {
      const auto byte = static_cast<unsigned char>(text[at + i]);
      if (byte >> 6 != 2) return false;
      character = character << 6 | (byte & 0x3FU);
    }
    constexpr std::array<std::uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
    const bool is_surrogate = character >= 0xD800 && character <= 0xDFFF;
    if (character < least[size] || character > 0x10FFFF || is_surrogate) return false;
    at += size;
  }
  return true;
}

/// Whether something can follow that makes it UTF-8.
inline bool may_become_utf8(std::string_view text) {
  if (is_utf8_slowly(text)) return true;
  for (std::size_t cut = 1; cut <= 3 && cut <= text.size(); ++cut) {
    std::string begun(text.substr(text.size() - cut));
    if (!is_utf8_slowly(text.substr(0, text.size() - cut))) continue;
    for (const char* rest :
         {"\x80", "\x90", "\xA0", "\x80\x80", "\x90\x80", "\xA0\x80", "\x80\x80\x80", "\x90\x80\x80"}) {
      if (is_utf8_slowly(begun + rest)) return true;
    }
  }
  return false;
}

/// The rules for a server's side, applied to a whole stream at once, with no regard to time or memory: what a decoder
/// must say about the stream however it arrives. Events are written as StreamDriver writes them.
class SlowWebSocketReader {
 public:
  using Accepts = std::function<bool(std::string_view)>;

  SlowWebSocketReader(std::string_view stream, Accepts accepts, std::size_t max_message)
      : rest_(stream), accepts_(std::move(accepts)), max_message_(max_message) {}

  std::vector<std::string> events() {
    while (frame()) {
    }
    return std::move(events_);
  }

 private:
  struct Head {
    std::uint8_t first = 0;
    std::uint8_t second = 0;
    std::uint64_t length = 0;
    std::size_t size = 0;
    bool is_control() const { return (first & 8) != 0; }
    bool is_last() const { return first >= 0x80; }
    unsigned opcode() const { return first & 15U; }
  };

  std::uint8_t byte(std::size_t at) const { return static_cast<std::uint8_t>(rest_[at]); }

  // False: the stream ends.
  bool frame() {
    Head head;
    if (rest_.empty()) return false;
    head.first = byte(0);
    if (!failed_ && !opcode_is_proper(head)) return true;
    if (rest_.size() < 2) return false;
    head.second = byte(1);
    const bool is_masked = head.second >= 0x80;
    head.length = head.second & 0x7F;
    if (!failed_ && (!is_masked || (head.is_control() && head.length > 125))) return fail("protocol-error");
    const std::size_t more = head.length == 126 ? 2 : head.length == 127 ? 8 : 0;
    if (rest_.size() < 2 + more) return false;
    if (more > 0) {
      head.length = 0;
      for (std::size_t i = 0; i < more; ++i) head.length = head.length * 256 + byte(2 + i);
      const bool is_too_long_a_form = head.length < (more == 2 ? 126U : 65536U);
      if (!failed_ && (is_too_long_a_form || head.length >> 63 != 0)) return fail("protocol-error");
    }
    head.size = 2 + more + (is_masked ? 4 : 0);
    if (rest_.size() < head.size) return false;
    if (failed_) return pass(head, true);
    return head.is_control() ? control(head) : data(head);
  }

  bool opcode_is_proper(const Head& head) {
    const bool is_reserved = (head.first & 0x70) != 0 || (head.opcode() > 2 && head.opcode() < 8) || head.opcode() > 10;
    if (!is_reserved && head.opcode() == 2 && !message_) return !fail("binary-message");
    const bool fits = head.opcode() == 0  ? message_.has_value()
                      : head.is_control() ? head.is_last()
                                          : head.opcode() == 1 && !message_;
    return is_reserved || !fits ? !fail("protocol-error") : true;
  }

  bool fail(const std::string& reason) {
    events_.push_back("! " + reason);
    failed_ = true;
    message_.reset();
    return true;
  }

  bool pass(const Head& head, bool tells_close) {
    if (tells_close && head.opcode() == 8) events_.emplace_back("<close>");
    if (rest_.size() - head.size < head.length) return false;
    rest_.remove_prefix(head.size + head.length);
    return true;
  }

  std::string payload(const Head& head) const {
    std::string text(rest_.substr(head.size, head.length));
    for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(text[i] ^ rest_[head.size - 4 + i % 4]);
    return text;
  }

  bool control(const Head& head) {
    if (rest_.size() - head.size < head.length) return false;
    const std::string text = payload(head);
    if (head.opcode() == 9) events_.push_back("<ping " + text + '>');
    if (head.opcode() == 8) {
      const int code =
          text.size() < 2 ? 1000 : static_cast<std::uint8_t>(text[0]) * 256 + static_cast<std::uint8_t>(text[1]);
      const bool is_private = code >= 3000 && code < 5000;
      const bool is_defined = (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014);
      if (text.size() == 1 || !(is_private || is_defined)) return fail("protocol-error");
      if (text.size() > 2 && !is_utf8_slowly(std::string_view(text).substr(2))) return fail("not-utf8");
      events_.push_back(text.empty() ? "<close>" : "<close " + std::to_string(code) + ' ' + text.substr(2) + '>');
    }
    return pass(head, false);
  }

  bool data(const Head& head) {
    if (!message_) is_skipped_ = false;
    std::string& message = message_ ? *message_ : message_.emplace();
    if (!is_skipped_ && message.size() + head.length > max_message_) {
      is_skipped_ = true;
      events_.emplace_back("! oversize");
    }
    message += payload(head);
    const bool is_whole = rest_.size() - head.size >= head.length;
    if (is_skipped_ && !may_become_utf8(message)) {
      fail("not-utf8");
      return pass(head, false);
    }
    if (!is_whole) return false;
    pass(head, false);
    if (head.is_last()) end_message(*std::exchange(message_, std::nullopt));
    return true;
  }

  void end_message(const std::string& message) {
    if (!is_skipped_ && accepts_(message)) return events_.push_back(message);
    if (!is_utf8_slowly(message)) {
      fail("not-utf8");
    } else if (!is_skipped_) {
      events_.emplace_back("! invalid-json");
    }
  }

  std::string_view rest_;
  Accepts accepts_;
  std::size_t max_message_;
  std::optional<std::string> message_;
  bool is_skipped_ = false;
  bool failed_ = false;
  std::vector<std::string> events_;
};

}  // namespace duet::framing
