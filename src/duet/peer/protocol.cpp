#include "duet/peer/protocol.h"

#include <limits>

#include "duet/framing/content_length.h"
#include "duet/framing/lines.h"

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

std::unique_ptr<framing::Decoder> Protocol::make_decoder(framing::BlockPool& pool) const {
  if (framing == Framing::lines) return std::make_unique<framing::LineDecoder>(max_message, pool);
  return std::make_unique<framing::ContentLengthDecoder>(max_message, pool);
}

std::unique_ptr<framing::Encoder> Protocol::make_encoder() const {
  if (framing == Framing::lines) return std::make_unique<framing::LineEncoder>();
  return std::make_unique<framing::ContentLengthEncoder>();
}

}  // namespace duet::peer
