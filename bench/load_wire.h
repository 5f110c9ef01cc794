#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace load {

/// turned: `openssl s_server -rev` sends each line back from its end to its beginning.
enum class Wire { lsp, lines, resp, websocket, http, turned };

/// The header of a client's text frame. The mask is zero, so that ids can be put into the payload as they are: a server
/// unmasks with it like with any other.
inline std::string websocket_header(std::size_t length) {
  constexpr std::size_t short_form = 125;
  constexpr std::size_t two_byte_form = 0xFFFF;
  std::string header("\x81", 1);
  const auto append = [&](char kind, int bytes) {
    header += static_cast<char>(0x80 | kind);
    for (int i = bytes; i-- > 0;) header += static_cast<char>(length >> (8 * i));
  };
  if (length <= short_form) {
    append(static_cast<char>(length), 0);
  } else if (length <= two_byte_form) {
    append(126, 2);
  } else {
    append(127, 8);
  }
  return header.append(4, '\0');
}

inline std::string http_header(std::size_t length, std::string_view token) {
  return "POST /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + std::string(token) +
         "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
}

/// A number that is kept as its nine digits, because that is how it is sent and compared.
class Serial {
 public:
  static constexpr std::size_t digits = 9;

  const char* text() const { return text_.data(); }
  void step() {
    for (std::size_t i = digits; i-- > 0;) {
      if (text_[i]++ != '9') return;
      text_[i] = '0';
    }
    text_[0] = '1';  // all digits are used up: begin again
  }

 private:
  std::array<char, digits> text_{'1', '0', '0', '0', '0', '0', '0', '0', '0'};
};

/// The request of a run, framed: the same bytes every time but for the id, which stands at `id_at`.
/// A reply begins as the request's body does, id included; so does what an echo sends back.
struct Request {
  /// `method` "id" is a ping whose padding is in its id, which every server sends back.
  Request(Wire kind, std::string_view method, std::size_t pad, std::string_view token = {})
      : wire(kind), opening(method == "id" ? R"({"jsonrpc":"2.0","id":")" : R"({"jsonrpc":"2.0","id":)") {
    if (wire == Wire::resp) {
      bytes = "*1\r\n$4\r\nPING\r\n";
      return;
    }
    std::string body(opening);
    body.append(Serial::digits, '0');
    if (method == "id") {
      body.append(pad, 'x').append(R"(","method":"ping")");
    } else {
      body.append(R"(,"method":")").append(method).append("\"");
      if (pad > 0) body.append(R"(,"params":{"pad":")").append(pad, 'x').append("\"}");
    }
    body += '}';
    if (wire == Wire::lsp) bytes = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    if (wire == Wire::websocket) bytes = websocket_header(body.size());
    if (wire == Wire::http) bytes = http_header(body.size(), token);
    id_at = bytes.size() + opening.size();
    bytes += body;
    if (wire == Wire::lines || wire == Wire::turned) bytes += '\n';
  }

  void number(char* copy, const Serial& serial) const {
    if (wire != Wire::resp) std::memcpy(copy + id_at, serial.text(), Serial::digits);
  }

  /// True for a result, or an echo, of the request with that number.
  bool is_answered_by(std::string_view reply, const Serial& serial) const {
    if (wire == Wire::resp) return reply == "+PONG";
    if (wire == Wire::turned) return reply.size() + 1 == bytes.size();
    const std::size_t known = opening.size() + Serial::digits;
    return reply.size() > known + 10 && std::memcmp(reply.data(), opening.data(), opening.size()) == 0 &&
           std::memcmp(reply.data() + opening.size(), serial.text(), Serial::digits) == 0 &&
           std::memcmp(reply.data() + known, R"(,"error":)", 9) != 0;
  }

  Wire wire;
  std::string_view opening;
  std::string bytes;
  std::size_t id_at = 0;
};

/// Cuts what the server sends into replies. Looks at no byte twice.
class Replies {
 public:
  explicit Replies(Wire wire) : wire_(wire), buffer_(256 * 1024) {}

  std::span<char> room() {
    if (begin_ == end_) begin_ = end_ = searched_ = 0;
    if (buffer_.size() - end_ < 64 * 1024) buffer_.resize(buffer_.size() * 2);
    return {buffer_.data() + end_, buffer_.size() - end_};
  }
  void commit(std::size_t count) { end_ += count; }
  void forget() { begin_ = end_ = searched_ = 0; }

  /// Valid until room() is called.
  std::optional<std::string_view> next() {
    switch (wire_) {
      case Wire::lsp:
      case Wire::http:
        return next_body();
      case Wire::websocket:
        return next_websocket_frame();
      default:
        return next_line();
    }
  }

 private:
  std::optional<std::string_view> next_line() {
    const char* data = buffer_.data();
    const auto* newline = static_cast<const char*>(std::memchr(data + searched_, '\n', end_ - searched_));
    if (newline == nullptr) {
      searched_ = end_;
      return std::nullopt;
    }
    std::string_view line(data + begin_, static_cast<std::size_t>(newline - data) - begin_);
    begin_ = searched_ = static_cast<std::size_t>(newline - data) + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  std::optional<std::string_view> next_body() {
    constexpr std::string_view name = "Content-Length: ";
    const std::string_view held(buffer_.data() + begin_, end_ - begin_);
    const std::size_t header = held.substr(0, 4096).find("\r\n\r\n");
    if (header == std::string_view::npos) return std::nullopt;
    const std::size_t at = held.substr(0, header).find(name);
    std::size_t length = 0;
    if (at == std::string_view::npos) throw std::runtime_error("the server sent no Content-Length");
    std::from_chars(held.data() + at + name.size(), held.data() + header, length);
    if (held.size() < header + 4 + length) return std::nullopt;
    begin_ += header + 4 + length;
    return held.substr(header + 4, length);
  }

  std::optional<std::string_view> next_websocket_frame() {
    const std::string_view held(buffer_.data() + begin_, end_ - begin_);
    if (held.size() < 2) return std::nullopt;
    std::size_t length = static_cast<unsigned char>(held[1]);
    if ((length & 0x80U) != 0) throw std::runtime_error("the server sent a masked frame");
    const std::size_t more = length == 126 ? 2 : length == 127 ? 8 : 0;
    if (held.size() < 2 + more) return std::nullopt;
    if (more > 0) length = 0;
    for (std::size_t i = 0; i < more; ++i) length = length << 8U | static_cast<unsigned char>(held[2 + i]);
    if (held.size() < 2 + more + length) return std::nullopt;
    begin_ += 2 + more + length;
    return held.substr(2 + more, length);
  }

  Wire wire_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t searched_ = 0;  // lines: no newline before this
};

}  // namespace load
