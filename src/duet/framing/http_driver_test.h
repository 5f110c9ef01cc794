#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "duet/framing/http_request.h"

namespace duet::framing {

/// A head in one line: `POST /rpc {Host=a|Content-Length=2} 2 keep`.
inline std::string text_of(const HttpHead& head) {
  std::string text = std::string(head.method) + ' ' + std::string(head.path);
  if (!head.query.empty()) text += '?' + std::string(head.query);
  std::string fields;
  for (const HttpField& field : head.fields)
    fields += (fields.empty() ? "" : "|") + std::string(field.name) + '=' + std::string(field.value);
  text += " {" + fields + "} " + std::to_string(head.content_length) + (head.keeps_alive ? " keep" : " close");
  if (head.expectation == HttpExpectation::to_continue) text += " continue";
  if (head.expectation == HttpExpectation::other) text += " expects";
  return text;
}

inline std::string text_of(HttpFault fault) {
  const HttpRefusal& refusal = refusal_of(fault);
  return "! " + std::to_string(refusal.status) + ' ' + std::string(refusal.word);
}

/// Drives a decoder as a door does that lets everybody in, and writes down what came out: heads, `body
/// …`, `! STATUS WORD`.
class HttpDriver {
 public:
  explicit HttpDriver(HttpRequestDecoder& decoder, bool skips = false) : decoder_(decoder), skips_(skips) {}

  void feed(std::string_view bytes) {
    // A copy that is gone afterwards: who keeps a pointer into it is found out.
    const std::unique_ptr<char[]> portion(new char[bytes.size()]);
    std::copy(bytes.begin(), bytes.end(), portion.get());
    decoder_.feed({portion.get(), bytes.size()});
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

  const std::vector<std::string>& events() const { return events_; }
  std::size_t most_held() const { return most_held_; }

 private:
  void drain() {
    while (const std::optional<HttpPart> part = decoder_.next()) take(*part);
    most_held_ = std::max(most_held_, decoder_.held());
  }

  void take(const HttpPart& part) {
    if (part.fault) events_.push_back(text_of(*part.fault));
    if (part.body) events_.push_back("body " + std::string(*part.body));
    if (!part.head) return;
    events_.push_back(text_of(*part.head));
    skips_ ? decoder_.skip_body() : decoder_.read_body();
  }

  HttpRequestDecoder& decoder_;
  bool skips_;
  std::vector<std::string> events_;
  std::size_t most_held_ = 0;
};

/// In portions of random sizes up to `largest`, half of them into the decoder's room; 0: whole.
inline std::vector<std::string> http_events(std::string_view stream, std::size_t largest = 0, std::uint32_t seed = 1,
                                            bool skips = false) {
  HttpRequestDecoder decoder;
  HttpDriver driver(decoder, skips);
  std::minstd_rand random(seed);
  while (!stream.empty()) {
    const std::size_t count =
        largest == 0 ? stream.size() : std::min<std::size_t>(stream.size(), 1 + random() % largest);
    random() % 2 == 0 ? driver.feed(stream.substr(0, count)) : driver.read(stream.substr(0, count));
    stream.remove_prefix(count);
  }
  return driver.events();
}

}  // namespace duet::framing
