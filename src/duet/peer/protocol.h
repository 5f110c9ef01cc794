#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "duet/api.h"
#include "duet/base/clock.h"

namespace duet::framing {
class BlockPool;
class Decoder;
class Encoder;
}  // namespace duet::framing

namespace duet::peer {

/// Everything that differs between the ways of speaking JSON-RPC. A value: take a preset and change what you need.
struct DUET_API Protocol {
  enum class Framing : std::uint8_t {
    content_length,  ///< the header of LSP before each message
    lines,           ///< a message a line
    whole,           ///< what is received at once is a message
    websocket,       ///< a text message of a WebSocket, behind its handshake; the server's side
  };
  /// What becomes of bytes that are no proper message.
  enum class Faults : std::uint8_t {
    answered,  ///< with an error, as a server does
    told,      ///< to the owner, as a client does; a call whose answer it was fails
  };

  /// How a request is taken back before it is answered.
  struct Cancels {
    std::string_view method = "$/cancelRequest";
    std::string_view member = "id";  ///< of its params: which request
    bool answered = true;            ///< with an error, in its turn; else nothing follows
  };

  Framing framing = Framing::lines;
  bool batches = true;
  /// The most members of one.
  std::size_t max_batch = 1000;
  /// Else an answer leaves when it is known, and a request waits for no other.
  bool in_order = true;
  /// Ids are strings and integers only, and an error whose id is not known has no `id`, instead of null.
  bool strict_ids = false;
  Cancels cancels = {};
  Faults faults = Faults::answered;
  /// From a frame's first byte to its last; none: as long as it takes.
  std::optional<base::Duration> frame_timeout = std::nullopt;
  /// A call of ours that has timed out is cancelled by `$/cancelRequest`.
  bool cancels_late_calls = false;
  /// The largest message that is read.
  std::size_t max_message = 10U * 1024 * 1024;
  /// Answers not yet written plus requests not yet handled; past that, reading pauses. Calls and notifications of our
  /// own may fill half of it, so that two peers that flood each other keep reading.
  std::size_t max_waiting = 64U * 1024 * 1024;

  /// How much is read before others get their turn: a flood of small messages keeps them waiting for some milliseconds.
  /// Of messages that had to wait, and of a batch, so much is handled at once, too, and never more than 64 KiB.
  std::size_t read_at_once = 16U * 1024;

  /// Of a WebSocket: so long nothing may come before we send a Ping, and before it is given up; and so long our Close
  /// may stay without an answer.
  base::Duration ping_after = std::chrono::seconds(30);
  base::Duration drop_after = std::chrono::seconds(60);
  base::Duration close_patience = std::chrono::seconds(2);

  /// A server for an editor: no batches, and a partial frame times out.
  static Protocol lsp_server();
  /// A client of a language server: large messages, and no limit of time for a frame.
  static Protocol lsp_client();
  /// A server that gets a message a line, with batches.
  static Protocol json_lines();
  /// A client of such a server.
  static Protocol json_lines_client();
  /// A server that gets one message, or one batch, and has the answer taken out of it: the body of an HTTP request.
  static Protocol one_message();
  /// A server whose client is at the other end of a WebSocket. Pings and Closes are answered, the end of the input is a
  /// disconnect, and text that is not UTF-8 ends it, as all does that RFC 6455 forbids.
  static Protocol websocket();
  /// A server of the Model Context Protocol, with a message a line.
  static Protocol mcp_server();

  std::unique_ptr<framing::Decoder> make_decoder(framing::BlockPool& pool) const;
  std::unique_ptr<framing::Encoder> make_encoder() const;
};

}  // namespace duet::peer
