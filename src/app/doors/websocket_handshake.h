#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "duet/framing/http_head.h"

namespace duet::app {

/// What a request for `/ws` offers.
struct WebSocketOffer {
  std::string accepted_key;     ///< what its key is answered with
  bool names_protocol = false;  ///< `duet-rpc.1` is among its subprotocols
};

/// The subprotocol that is spoken, and what a browser puts before its token to send it as one.
inline constexpr std::string_view websocket_protocol = "duet-rpc.1";
inline constexpr std::string_view websocket_token_prefix = "duet-rpc.token.";

/// The token among the subprotocols of a request, if there is exactly one.
std::optional<std::string_view> websocket_token(const framing::HttpHead& head);
std::size_t count_websocket_tokens(const framing::HttpHead& head);

/// The offer, or why the connection cannot become a WebSocket: HttpFault::upgrade or bad_upgrade.
std::variant<WebSocketOffer, framing::HttpFault> websocket_offer(const framing::HttpHead& head);

}  // namespace duet::app
