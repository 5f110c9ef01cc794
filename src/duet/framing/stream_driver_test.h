#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/parse.hpp>

#include "duet/framing/frame.h"

namespace duet::framing {

inline bool is_json(std::string_view text) {
  boost::json::error_code error;
  boost::json::parse({text.data(), text.size()}, error);
  return !error;
}

inline std::string to_text(const Control& control) {
  const std::string_view payload = control.payload;
  if (control.kind == Control::Kind::ping) return "<ping " + std::string(payload) + '>';
  if (payload.size() < 2) return "<close>";
  const auto byte = [payload](std::size_t at) { return static_cast<unsigned char>(payload[at]); };
  return "<close " + std::to_string(byte(0) * 256 + byte(1)) + ' ' + std::string(payload.substr(2)) + '>';
}

/// Drives a decoder as a connection does and writes down what came out: a message's text, or `!` and
/// the reason of a fault (and, after a wrong content type, the body, which is wanted for its id), or `<ping …>`,
/// `<close CODE …>`.
class StreamDriver {
 public:
  explicit StreamDriver(Decoder& decoder, std::function<bool(std::string_view)> accepts = is_json)
      : decoder_(decoder), accepts_(std::move(accepts)) {}

  void feed(std::string_view bytes) {
    // A copy that is gone afterwards: who keeps a pointer into it is found out.
    const std::unique_ptr<char[]> portion(new char[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), portion.get());
    decoder_.feed({portion.get(), bytes.size()});
    drain();
  }

  /// The same with bytes that may be changed.
  void feed_in_place(std::string_view bytes) {
    const std::unique_ptr<char[]> portion(new char[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), portion.get());
    decoder_.feed_in_place({portion.get(), bytes.size()});
    drain();
  }

  /// The same by reading into the decoder's own room where it has some.
  void read(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::span<char> room = decoder_.room();
      if (room.empty()) return feed(bytes);
      const std::size_t count = std::min(room.size(), bytes.size());
      std::memcpy(room.data(), bytes.data(), count);
      decoder_.commit(count);
      bytes.remove_prefix(count);
      drain();
    }
  }

  void finish() {
    if (const auto fault = decoder_.finish()) note(*fault);
  }

  const std::vector<std::string>& events() const { return events_; }
  std::vector<std::string> take_events() { return std::exchange(events_, {}); }
  std::size_t most_held() const { return most_held_; }

 private:
  void note(Fault fault, std::string_view body = {}) {
    events_.push_back("! " + std::string(reason_of(fault)) + (body.empty() ? "" : " ") + std::string(body));
  }

  void drain() {
    while (const std::optional<Frame> frame = decoder_.next()) take(*frame);
    most_held_ = std::max(most_held_, decoder_.held().size());
  }

  void take(const Frame& frame) {
    if (!frame.body && !frame.fault) return events_.push_back(to_text(decoder_.control()));
    if (!frame.body) return note(*frame.fault);
    if (accepts_(*frame.body)) {
      if (frame.fault) return note(*frame.fault, *frame.body);
      events_.emplace_back(*frame.body);
      return;
    }
    const std::optional<Fault> wrong_length = decoder_.reject();
    if (frame.is_guess) return;
    if (frame.fault) return note(*frame.fault);
    if (wrong_length) return note(*wrong_length);
    events_.emplace_back("! invalid-json");
  }

  Decoder& decoder_;
  std::function<bool(std::string_view)> accepts_;
  std::vector<std::string> events_;
  std::size_t most_held_ = 0;
};

/// How the bytes of a stream arrive.
enum class Arrival { whole, byte_by_byte, byte_by_byte_into_room };

template <typename DecoderType>
std::vector<std::string> events_of(std::string_view stream, Arrival arrival = Arrival::whole) {
  DecoderType decoder;
  StreamDriver driver(decoder);
  const std::size_t step = arrival == Arrival::whole ? std::max<std::size_t>(stream.size(), 1) : 1;
  for (std::size_t at = 0; at < stream.size(); at += step) {
    const std::string_view portion = stream.substr(at, step);
    if (arrival == Arrival::byte_by_byte_into_room) {
      driver.read(portion);
    } else {
      driver.feed(portion);
    }
  }
  driver.finish();
  return driver.take_events();
}

/// In portions of random sizes, half of them into the decoder's room.
template <typename DecoderType, typename Random>
std::vector<std::string> events_of_portions(std::string_view stream, Random& random, std::size_t largest) {
  DecoderType decoder;
  StreamDriver driver(decoder);
  while (!stream.empty()) {
    const std::size_t count = std::min<std::size_t>(stream.size(), 1 + random() % largest);
    if (random() % 2 == 0) {
      driver.read(stream.substr(0, count));
    } else {
      driver.feed(stream.substr(0, count));
    }
    stream.remove_prefix(count);
  }
  driver.finish();
  return driver.take_events();
}

}  // namespace duet::framing
