// Tells what the HTTP decoder makes of streams of bytes, for tests that have another parser to compare it with.
//
// Reads `LENGTH\n` and so many bytes, again and again, until the end of stdin. Writes a line of JSON for each stream:
//   {"requests": [{method, target, fields: [[name, value]…], body, keepsAlive}…], "fault": null or a word}
// All texts are in hexadecimal. Only requests whose body is whole are told.

#include <cstddef>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "duet/framing/http_request.h"

namespace {

using namespace duet::framing;

std::string hex(std::string_view text) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += {digits[byte / 16], digits[byte % 16]};
  }
  return out + '"';
}

std::string told(const HttpHead& head) {
  std::string fields;
  for (const HttpField& field : head.fields)
    fields += (fields.empty() ? "[" : ",[") + hex(field.name) + ',' + hex(field.value) + ']';
  return "{\"method\":" + hex(head.method) + ",\"target\":" + hex(head.target) + ",\"fields\":[" + fields +
         "],\"keepsAlive\":" + (head.keeps_alive ? "true" : "false");
}

std::string answer(std::string_view stream) {
  HttpRequestDecoder decoder;
  decoder.feed(stream);
  std::string requests;
  std::string request;
  std::string fault = "null";
  while (const std::optional<HttpPart> part = decoder.next()) {
    if (part->head) {
      request = told(*part->head);
      decoder.read_body();
    } else if (part->body) {
      requests += (requests.empty() ? "" : ",") + request + ",\"body\":" + hex(*part->body) + '}';
    } else {
      fault = '"' + std::string(refusal_of(*part->fault).word) + '"';
    }
  }
  return "{\"requests\":[" + requests + "],\"fault\":" + fault + '}';
}

}  // namespace

int main() {
  std::size_t length = 0;
  while (std::cin >> length && std::cin.get() == '\n') {
    std::string stream(length, '\0');
    if (!std::cin.read(stream.data(), static_cast<std::streamsize>(length))) return 1;
    std::cout << answer(stream) << '\n';
  }
  return 0;
}
