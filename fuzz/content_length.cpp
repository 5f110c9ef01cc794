// Content-Length framing: however the bytes arrive, the same comes of it; it is what the rules say; and no more is held
// than a body or two header blocks.
//
// So that whole frames and long headers are easy to come by, a few bytes of the input stand for more:
//   \x01 N   a correct header for the next N bytes
//   \x02 N   N times 64 letters
//   \x03 N   N times 64 bytes of header lines

#include "duet/framing/content_length.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "duet/framing/slow_reader_test.h"
#include "duet/framing/stream_driver_test.h"
#include "duet/rpc/json_scan.h"
#include "require.h"

namespace {

using duet::framing::ContentLengthDecoder;
using Events = std::vector<std::string>;

constexpr std::size_t max_body = 5000;
constexpr std::size_t longest = 20'000;

// What costs much is done to a sample of the inputs, which their bytes choose: the same input always gets the same
// checks. As a test of the corpus each gets them all.
bool is_one_of([[maybe_unused]] std::size_t many, [[maybe_unused]] std::string_view input) {
#ifdef DUET_FUZZING
  return std::hash<std::string_view>{}(input) % many == 0;
#else
  return true;
#endif
}

std::string expanded(std::string_view input, std::size_t most) {
  std::string out;
  for (std::size_t i = 0; i < input.size() && out.size() < most; ++i) {
    const auto next = i + 1 < input.size() ? static_cast<unsigned char>(input[i + 1]) : 0U;
    switch (input[i]) {
      case 1:
        out += "Content-Length: " + std::to_string(next) + "\r\n\r\n";
        break;
      case 2:
        out.append(std::min(std::size_t{next} * 64, most - out.size()), 'x');
        break;
      case 3:
        for (unsigned line = 0; line < next && out.size() < most; ++line)
          out += "X-Y: " + std::string(57, 'z') + "\r\n";
        break;
      default:
        out += input[i];
        continue;
    }
    ++i;
  }
  return out;
}

Events read(std::string_view stream, std::size_t largest, std::uint32_t seed) {
  ContentLengthDecoder decoder(max_body);
  duet::framing::StreamDriver driver(decoder, duet::rpc::is_valid_json);
  std::minstd_rand random(seed);
  while (!stream.empty()) {
    const std::size_t count =
        std::min<std::size_t>(stream.size(), largest >= longest ? largest : 1 + random() % largest);
    random() % 2 == 0 ? driver.feed(stream.substr(0, count)) : driver.read(stream.substr(0, count));
    stream.remove_prefix(count);
  }
  require(driver.most_held() <= std::max(max_body, 2 * duet::framing::max_header), "what is held is bounded");
  driver.finish();
  return driver.take_events();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string stream = expanded(input, is_one_of(8, input) ? longest : longest / 10);
  const Events whole = read(stream, 2 * longest, 0);
  require(whole == read(stream, stream.size() / 8 + 1 + data[0], data[0]), "in portions it is the same");
  if (stream.size() <= 20 || is_one_of(128, input)) {
    require(whole == read(stream, 1, data[0]), "byte by byte it is the same");
  }
  if (stream.size() <= 100 || is_one_of(128, input)) {
    require(whole == duet::framing::SlowReader(stream, duet::rpc::is_valid_json, max_body).events(),
            "the rules are kept");
  }
  return 0;
}
