#include "app/doors/websocket_handshake.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <nettle/sha1.h>

#include "duet/base/base64.h"
#include "duet/framing/http_text.h"

namespace duet::app {
namespace {

using framing::HttpFault;
using framing::HttpHead;

constexpr std::string_view key_field = "sec-websocket-key";
constexpr std::string_view version_field = "sec-websocket-version";
constexpr std::string_view protocol_field = "sec-websocket-protocol";

std::vector<std::string_view> subprotocols(const HttpHead& head) {
  std::vector<std::string_view> found;
  for (const framing::HttpField& field : head.fields) {
    if (!framing::same_word(field.name, protocol_field)) continue;
    for (std::string_view rest = field.value; !rest.empty();) found.push_back(framing::cut_member(rest, ','));
  }
  return found;
}

// 16 bytes in base64: 22 characters that say something, and `==`.
bool is_key(std::string_view key) {
  constexpr std::size_t nonce_bytes = 16;
  const std::optional<std::string> nonce = base::from_base64(key);
  return nonce && nonce->size() == nonce_bytes;
}

std::string answer_to(std::string_view key) {
  constexpr std::string_view guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  std::string text(key);
  text += guid;
  sha1_ctx context;
  sha1_init(&context);
  sha1_update(&context, text.size(), reinterpret_cast<const std::uint8_t*>(text.data()));
  std::array<std::uint8_t, SHA1_DIGEST_SIZE> digest{};
  sha1_digest(&context, digest.size(), digest.data());
  return base::to_base64({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

}  // namespace

std::size_t count_websocket_tokens(const HttpHead& head) {
  const auto is_token = [](std::string_view name) { return name.starts_with(websocket_token_prefix); };
  return static_cast<std::size_t>(std::ranges::count_if(subprotocols(head), is_token));
}

std::optional<std::string_view> websocket_token(const HttpHead& head) {
  if (count_websocket_tokens(head) != 1) return std::nullopt;
  for (const std::string_view name : subprotocols(head)) {
    if (name.starts_with(websocket_token_prefix)) return name.substr(websocket_token_prefix.size());
  }
  return std::nullopt;
}

std::variant<WebSocketOffer, HttpFault> websocket_offer(const HttpHead& head) {
  const bool upgrades = head.fields.lists("upgrade", "websocket") && head.fields.lists("connection", "upgrade");
  if (!upgrades || head.fields.count(version_field) != 1 || head.fields.find(version_field) != "13")
    return HttpFault::upgrade;
  if (head.fields.count(key_field) != 1 || !is_key(*head.fields.find(key_field))) return HttpFault::bad_upgrade;
  WebSocketOffer offer{.accepted_key = answer_to(*head.fields.find(key_field))};
  const std::vector<std::string_view> names = subprotocols(head);
  offer.names_protocol = std::ranges::find(names, websocket_protocol) != names.end();
  if (!names.empty() && !offer.names_protocol) return HttpFault::bad_upgrade;
  return offer;
}

}  // namespace duet::app
