// HTTP requests: however the bytes arrive, the same comes of them; it is what the rules say; after a fault nothing
// comes. Whatever we take, Boost.Beast takes, with the same method, target, fields and length of the body, and the next
// request begins where that one ends.
//
// So that whole requests and long heads are easy to come by, a few bytes of the input stand for more:
//   \x01 N   the head of a request with a body of N bytes
//   \x02 N   N times 64 letters
//   \x03 N   N fields

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>

#include "duet/framing/http_checks.h"
#include "duet/framing/http_driver_test.h"
#include "duet/framing/http_request.h"
#include "duet/framing/slow_http_reader_test.h"
#include "require.h"

namespace {

namespace beast = boost::beast;
using duet::framing::HttpHead;
using duet::framing::HttpPart;
using duet::framing::HttpRequestDecoder;
using Events = std::vector<std::string>;
using Fields = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t longest = 40'000;

// Byte by byte costs much, so that only a sample of the long inputs is read so, which their bytes choose.
bool is_chosen([[maybe_unused]] std::string_view input) {
#ifdef DUET_FUZZING
  return std::hash<std::string_view>{}(input) % 32 == 0;
#else
  return true;
#endif
}

std::string expanded(std::string_view input) {
  std::string out;
  for (std::size_t i = 0; i < input.size() && out.size() < longest; ++i) {
    const auto next = i + 1 < input.size() ? static_cast<unsigned char>(input[i + 1]) : 0U;
    switch (input[i]) {
      case 1:
        out += "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(next) + "\r\n\r\n";
        break;
      case 2:
        out.append(std::size_t{next} * 64, 'x');
        break;
      case 3:
        for (unsigned line = 0; line < next; ++line) out += "X-Y: z\r\n";
        break;
      default:
        out += input[i];
        continue;
    }
    ++i;
  }
  return out;
}

std::string text_of(beast::string_view text) { return {text.data(), text.size()}; }

// Beast keeps fields of one name together.
Fields sorted(Fields fields) {
  for (auto& [name, value] : fields)
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  std::stable_sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return fields;
}

// What is taken is named there.
void check_accept(const HttpHead& head) {
  std::string named;
  for (const auto& field : head.fields) {
    if (boost::beast::iequals(text_of(field.name), "accept")) named += text_of(field.value) + ',';
  }
  std::transform(named.begin(), named.end(), named.begin(), [](unsigned char c) { return std::tolower(c); });
  const bool is_named = named.find("a/b") != std::string::npos || named.find("a/*") != std::string::npos ||
                        named.find("*/*") != std::string::npos;
  const bool is_taken = duet::framing::accepts(head, "a/b");
  require(head.fields.count("accept") == 0 ? is_taken : is_named || !is_taken, "what is taken is named");
}

// `stream` begins with the head. Returns the size of it.
std::size_t compare_with_beast(const HttpHead& head, std::string_view stream) {
  beast::http::request_parser<beast::http::empty_body> parser;
  parser.eager(false);
  parser.header_limit(64U * 1024);
  parser.body_limit(boost::none);
  beast::error_code error;
  const std::size_t used = parser.put(boost::asio::buffer(stream.data(), stream.size()), error);
  require(!error && parser.is_header_done(), "Beast takes the head");
  require(text_of(parser.get().method_string()) == head.method, "the same method");
  require(text_of(parser.get().target()) == head.target, "the same target");
  require(parser.get().version() == 11, "the same version");
  require(!parser.chunked(), "no chunks");
  require(parser.content_length().value_or(0) == head.content_length, "the same length");
  require(parser.keep_alive() == head.keeps_alive, "the same wish to go on");
  Fields ours;
  Fields theirs;
  for (const auto& field : head.fields) ours.emplace_back(field.name, field.value);
  for (const auto& field : parser.get()) theirs.emplace_back(text_of(field.name_string()), text_of(field.value()));
  require(sorted(ours) == sorted(theirs), "the same fields");
  check_accept(head);
  return used;
}

void compare_all_with_beast(std::string_view stream) {
  HttpRequestDecoder decoder;
  decoder.feed(stream);
  std::size_t at = 0;  // where the next request begins
  while (const std::optional<HttpPart> part = decoder.next()) {
    if (part->body) at += part->body->size();
    if (!part->head) continue;
    require(part->head->method.data() == stream.data() + at, "requests follow each other");
    at += compare_with_beast(*part->head, stream.substr(at));
    decoder.read_body();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string stream = expanded(input);
  const Events whole = duet::framing::http_events(stream);
  require(whole == duet::framing::http_events(stream, stream.size() / 8 + 1 + data[0], data[0]),
          "in portions it is the same");
  if (stream.size() <= 200 || is_chosen(input))
    require(whole == duet::framing::http_events(stream, 1, data[0]), "byte by byte it is the same");
  if (stream.size() <= 200 || is_chosen(input))
    require(whole == duet::framing::slow_http_events(stream), "the rules are kept");
  for (std::size_t i = 0; i + 1 < whole.size(); ++i)
    require(!whole[i].starts_with("! "), "after a fault nothing comes");
  compare_all_with_beast(stream);
  return 0;
}
