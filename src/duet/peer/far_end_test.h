#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "duet/peer/protocol.h"
#include "duet/transport/channel.h"

namespace duet::peer {

using Framing = Protocol::Framing;

inline std::string framed(std::string_view body) {
  return "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

/// Cuts the frames of a WebSocket's server, from `at` on, as far as they are whole: a message's text, `<ping …>`,
/// `<pong …>`, `<close CODE …>`, or `<wrong>`.
inline std::vector<std::string> take_server_frames(std::string_view bytes, std::size_t& at) {
  std::vector<std::string> found;
  const auto byte = [&](std::size_t where) { return static_cast<unsigned char>(bytes[where]); };
  while (bytes.size() - at >= 2) {
    std::size_t size = byte(at + 1);
    const std::size_t more = size == 126 ? 2 : size == 127 ? 8 : 0;
    if (bytes.size() - at < 2 + more) break;
    if (more > 0) size = 0;
    for (std::size_t i = 0; i < more; ++i) size = size * 256 + byte(at + 2 + i);
    if (bytes.size() - at - 2 - more < size) break;
    const std::string payload(bytes.substr(at + 2 + more, size));
    const auto code = [&] { return std::to_string((payload[0] & 0xFF) * 256 + (payload[1] & 0xFF)); };
    switch (byte(at)) {
      case 0x81:
        found.push_back(payload);
        break;
      case 0x88:
        found.push_back(payload.empty() ? "<close>" : "<close " + code() + ' ' + payload.substr(2) + '>');
        break;
      case 0x89:
        found.push_back("<ping " + payload + '>');
        break;
      case 0x8A:
        found.push_back("<pong " + payload + '>');
        break;
      default:
        found.emplace_back("<wrong>");
    }
    at += 2 + more + size;
  }
  return found;
}

/// The other end of a connection under test. It knows bytes only: sends what it is given as the channel takes it, and
/// keeps what comes.
class FarEnd final : private transport::Channel::Listener {
 public:
  explicit FarEnd(std::unique_ptr<transport::Channel> channel) : channel_(std::move(channel)) { channel_->open(*this); }

  void send(std::string_view bytes) {
    unsent_ += bytes;
    write();
  }
  void read(bool wanted) {
    reading_ = wanted;
    tell_wants();
  }
  void close() {
    channel_->close();
    closed_ = true;
  }

  /// All that came so far.
  const std::string& text() const { return text_; }
  bool ended() const { return ended_; }
  bool sent_all() const { return unsent_.empty(); }

  /// The bodies of the whole messages that came since the last call.
  std::vector<std::string> take(Framing framing) {
    if (framing == Framing::websocket) return take_server_frames(text_, taken_);
    std::vector<std::string> found;
    for (std::size_t size = 0; (size = body_size(framing)) != std::string::npos;) {
      const std::size_t begin = framing == Framing::content_length ? text_.find("\r\n\r\n", taken_) + 4 : taken_;
      found.push_back(text_.substr(begin, size));
      taken_ = begin + size + (framing == Framing::lines ? 1 : 0);
    }
    return found;
  }
  /// Nothing came that is not part of a whole message.
  bool is_whole() const { return taken_ == text_.size(); }

 private:
  void on_readable() override {
    std::array<char, 65536> room;
    const transport::IoResult moved = channel_->read(room);
    if (moved.state == transport::IoResult::State::some) text_.append(room.data(), moved.count);
    ended_ = moved.state == transport::IoResult::State::ended || moved.state == transport::IoResult::State::broken;
    if (ended_) read(false);
  }
  void on_writable() override { write(); }
  void on_hangup() override { close(); }

  void write() {
    while (!closed_ && !unsent_.empty()) {
      const transport::IoResult moved = channel_->write(unsent_);
      if (moved.state != transport::IoResult::State::some) break;
      unsent_.erase(0, moved.count);
    }
    tell_wants();
  }
  void tell_wants() {
    if (!closed_) channel_->want(reading_, !unsent_.empty());
  }

  std::size_t body_size(Framing framing) const {
    if (framing == Framing::lines) {
      const std::size_t end = text_.find('\n', taken_);
      return end == std::string::npos ? end : end - taken_;
    }
    constexpr std::string_view name = "Content-Length: ";
    const std::size_t header_end = text_.find("\r\n\r\n", taken_);
    if (header_end == std::string::npos || text_.compare(taken_, name.size(), name) != 0) return std::string::npos;
    const std::size_t size = std::stoul(text_.substr(taken_ + name.size(), header_end));
    return text_.size() - header_end - 4 >= size ? size : std::string::npos;
  }

  std::unique_ptr<transport::Channel> channel_;
  std::string text_;
  std::size_t taken_ = 0;
  std::string unsent_;
  bool reading_ = true;
  bool ended_ = false;
  bool closed_ = false;
};

}  // namespace duet::peer
