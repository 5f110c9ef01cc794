// WebSocket framing: however the bytes arrive, messages, Pings, Closes and faults are those that a slow reading of the
// whole stream finds, and no more is held than one message.
//
// The first byte chooses the splits. The others are the stream, in a shape that a fuzzer gets through: unless the first
// byte is odd, the mask of every frame is written as it comes, and the payload is masked here.

#include "duet/framing/websocket.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "duet/framing/stream_driver_test.h"
#include "duet/framing/websocket_frames_test.h"
#include "duet/rpc/utf8.h"
#include "require.h"

namespace {

using duet::framing::ClientFrame;
using duet::framing::WebSocketDecoder;
using Events = std::vector<std::string>;

constexpr std::size_t max_message = 200;
constexpr std::size_t most_behind = 14 + 125;  // a header and a control frame's payload

bool accepts(std::string_view body) { return duet::rpc::is_utf8(body) && body.find('!') == std::string_view::npos; }

// A frame is its first byte, a byte for its length, and so much payload.
std::string frames_of(std::string_view script) {
  std::string stream;
  while (script.size() >= 2) {
    const auto first = static_cast<std::uint8_t>(script[0]);
    const auto length = static_cast<std::uint8_t>(script[1]);
    const std::string payload(script.substr(2, length));
    script.remove_prefix(2 + payload.size());
    ClientFrame frame{.opcode = static_cast<std::uint8_t>(first & 0x0F),
                      .payload = payload,
                      .is_last = first >= 0x80,
                      .reserved = static_cast<std::uint8_t>(first >> 4 & 7)};
    for (std::uint8_t& each : frame.mask) each = static_cast<std::uint8_t>(each * (first + length));
    stream += frame.bytes();
  }
  return stream;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::minstd_rand random(data[0]);
  const std::string_view script(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string text = data[0] % 2 == 0 ? frames_of(script) : std::string(script);
  const Events expected = duet::framing::SlowWebSocketReader(text, accepts, max_message).events();
  for (const std::size_t largest : {text.size() + 1, std::size_t{1}, std::size_t{1} + data[0]}) {
    WebSocketDecoder decoder(max_message);
    duet::framing::StreamDriver driver(decoder, accepts);
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t count =
          std::min<std::size_t>(rest.size(), largest > text.size() ? largest : 1 + random() % largest);
      switch (random() % 3) {
        case 0:
          driver.feed(rest.substr(0, count));
          break;
        case 1:
          driver.feed_in_place(rest.substr(0, count));
          break;
        default:
          driver.read(rest.substr(0, count));
      }
      rest.remove_prefix(count);
    }
    driver.finish();
    require(driver.events() == expected, "the messages and faults are those of the whole stream");
    require(driver.most_held() <= max_message + most_behind, "no more than a message is held");
  }
  return 0;
}
