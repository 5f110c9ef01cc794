#include "duet/peer/protocol.h"

#include <limits>

#include "duet/framing/content_length.h"
#include "duet/framing/lines.h"
#include "duet/framing/websocket.h"
#include "duet/framing/whole.h"

namespace duet::peer {
namespace {

constexpr std::size_t alone = std::numeric_limits<std::size_t>::max();  // there are no others

}  // namespace

Protocol Protocol::lsp_server() {
  return {.framing = Framing::content_length,
          .batches = false,
          .frame_timeout = std::chrono::seconds(30),
          .read_at_once = alone};
}

Protocol Protocol::lsp_client() {
  return {.framing = Framing::content_length,
          .batches = false,
          .faults = Faults::told,
          .cancels_late_calls = true,
          .max_message = framing::max_answer,
          .read_at_once = alone};
}

Protocol Protocol::json_lines() { return {}; }

Protocol Protocol::json_lines_client() {
  return {.faults = Faults::told, .max_message = framing::max_answer, .read_at_once = alone};
}

Protocol Protocol::one_message() { return {.framing = Framing::whole}; }
Protocol Protocol::websocket() { return {.framing = Framing::websocket}; }

// Batches are for the one revision that has them: see Conversation::allow_batches().
Protocol Protocol::mcp_server() {
  return {.batches = false,
          .max_batch = 100,
          .in_order = false,
          .strict_ids = true,
          .cancels = {.method = "notifications/cancelled", .member = "requestId", .answered = false},
          .read_at_once = alone};
}

std::unique_ptr<framing::Decoder> Protocol::make_decoder(framing::BlockPool& pool) const {
  if (framing == Framing::whole) return std::make_unique<framing::WholeDecoder>(max_message);
  if (framing == Framing::lines) return std::make_unique<framing::LineDecoder>(max_message, pool);
  if (framing == Framing::websocket) return std::make_unique<framing::WebSocketDecoder>(max_message, pool);
  return std::make_unique<framing::ContentLengthDecoder>(max_message, pool);
}

std::unique_ptr<framing::Encoder> Protocol::make_encoder() const {
  if (framing == Framing::whole) return std::make_unique<framing::WholeEncoder>();
  if (framing == Framing::lines) return std::make_unique<framing::LineEncoder>();
  if (framing == Framing::websocket) return std::make_unique<framing::WebSocketEncoder>();
  return std::make_unique<framing::ContentLengthEncoder>();
}

}  // namespace duet::peer
