#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace duet::framing {

/// What can be wrong with a frame before anybody looks at its JSON.
enum class Fault : std::uint8_t {
  malformed_header,
  length_mismatch,
  oversize,
  header_too_large,
  unsupported_content_type,
  bad_charset,
  protocol_error,  ///< these three end a WebSocket
  binary_message,
  not_utf8,
};

/// The word that stands for a fault in `error.data.reason`.
std::string_view reason_of(Fault fault);

/// One message's bytes, or what went wrong instead. After a wrong content type there may be a body too:
/// its id is wanted for the answer. With neither it is no message: see Decoder::control().
struct Frame {
  std::optional<std::string_view> body;
  std::optional<Fault> fault;
  bool is_guess = false;  ///< found behind a fault that may be its own: if it is no JSON, that has been told
};

/// What a framing has beside messages.
struct Control {
  enum class Kind : std::uint8_t { ping, close };
  Kind kind = Kind::ping;
  std::string_view payload = {};  ///< of a Close: nothing, or its code in two bytes and a reason
};

/// How much of a frame there was, for the log.
struct Extent {
  std::uint64_t bytes = 0;                 ///< of its body (all of an oversize one) or, before that, of its header
  std::optional<std::uint64_t> announced;  ///< of a body that is not whole, if that is known
};

/// Cuts a byte stream into frames. Bytes may arrive in any portions; the frames are the same.
/// Linear in time, bounded in memory, no I/O, no clock, never throws on bad input.
///
/// Use: feed() or room()/commit(), then next() until it has nothing, then again. A body is valid
/// until the next call of any kind.
class Decoder {
 public:
  virtual ~Decoder() = default;

  virtual void feed(std::string_view bytes) = 0;  ///< borrowed until next() returns nullopt
  /// The same for bytes that may be changed.
  virtual void feed_in_place(std::span<char> bytes) { feed({bytes.data(), bytes.size()}); }
  /// Where to read into directly while part of a frame is held; empty when nothing is held.
  virtual std::span<char> room() = 0;
  virtual void commit(std::size_t count) = 0;

  virtual std::optional<Frame> next() = 0;  ///< nullopt: needs more bytes
  /// The body next() gave last is not JSON; says which fault that is (nullopt: the JSON itself).
  /// Only for a frame that had a body.
  virtual std::optional<Fault> reject() = 0;
  virtual std::optional<Fault> finish() = 0;      ///< the stream has ended
  virtual Extent fault_extent() const = 0;        ///< of the frame without a body whose fault was told last
  virtual Control control() const { return {}; }  ///< what next() gave last, if that was no message

  virtual bool is_empty() const = 0;               ///< no frame has begun, and nothing is kept
  virtual bool inside_frame() const = 0;           ///< a frame has begun and is not complete
  virtual std::uint64_t frames_begun() const = 0;  ///< tells one partial frame from another
  virtual std::string_view held() const = 0;       ///< what is kept: the last bytes that came
  virtual Extent partial_extent() const = 0;       ///< of a frame that is not complete
  virtual void drop_partial() = 0;                 ///< after a timeout: forget the partial frame
};

/// Puts messages into a byte stream: what stands before a body and behind it.
class Encoder {
 public:
  static constexpr std::size_t most_bytes = 48;  ///< before and behind a body, together

  virtual ~Encoder() = default;
  /// Writes what stands before a body of that size at `at`; returns how many bytes.
  virtual std::size_t begin(char* at, std::size_t body_size) = 0;
  /// Writes what stands behind a body at `at`; returns how many bytes. `payload` is the part of the
  /// body that somebody else spelt, and may be changed where its framing demands it.
  virtual std::size_t end(char* at, std::span<char> payload) = 0;
};

/// Ten MiB: the largest body a server reads.
inline constexpr std::size_t max_body = 10U * 1024 * 1024;
/// The largest body a client reads.
inline constexpr std::size_t max_answer = 64U * 1024 * 1024;
/// The largest header block, its end included.
inline constexpr std::size_t max_header = 8192;

}  // namespace duet::framing
