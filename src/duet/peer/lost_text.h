#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace duet::peer {

/// Remembers how the bytes behind the last message of a stream begin, so that something can be said about them when
/// they turn out to be no message. It keeps the first few hundred of them.
class LostText {
 public:
  static constexpr std::size_t most_kept = 300;

  /// The next bytes of the stream; they must stay valid until end_chunk().
  void begin_chunk(std::string_view bytes);
  /// All but the last `unused` bytes so far belong to one message more, or to what is no message.
  void begin_message(std::size_t unused);
  /// It has been handled, or told of. `held`: the last bytes of the stream, of which some may belong to what follows.
  void end_message(std::string_view held);
  void end_chunk();

  /// How that message begins: the same however its bytes came.
  std::string start() const { return start_until(looked_at_); }
  /// All that is known of it, and perhaps of what follows.
  std::string known() const { return start_until(received_); }
  std::uint64_t received() const { return received_; }

 private:
  std::string start_until(std::uint64_t end) const;

  std::string_view chunk_;
  std::uint64_t received_ = 0;     // all of these are counted from the first byte received
  std::uint64_t looked_at_ = 0;    // the end of the message that is handled now
  std::uint64_t message_end_ = 0;  // the end of the last one before
  std::string kept_;               // what came behind it before this chunk
};

/// What may be the start of an answer, perhaps with its header; empty if it is anything else. `is_printed`: it stands
/// where a header should be, so a header inside it begins another message.
std::string_view start_of_answer(std::string_view text, bool is_printed);
/// The number that such a start names as its id, if all of it is there.
std::string_view visible_id(std::string_view start);

}  // namespace duet::peer
