#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "duet/framing/http_checks.h"
#include "duet/framing/http_fault.h"
#include "duet/framing/http_head.h"
#include "duet/peer/conversation.h"

namespace duet::app {

/// What is at a path.
enum class HttpRoute : std::uint8_t { page, login, logout, rpc, events, websocket, metrics, mcp };

/// Whose token that is; null: nobody's.
using HttpAdmit = std::function<std::shared_ptr<const peer::Admission>(std::string_view token)>;

/// What a head is held to.
struct HttpGate {
  framing::HttpNames names;
  std::string_view scheme;
  const HttpAdmit& admit;
  /// As what he was let in before, by what he has shown then: no token is looked at.
  std::shared_ptr<const peer::Admission> shown = {};
  bool has_mcp = false;  ///< else there is nothing at `/mcp`
};

/// What a head asks for, and why it does not get it.
struct HttpPass {
  HttpRoute route = HttpRoute::page;
  std::string_view allow = {};  ///< the methods of the path
  std::shared_ptr<const peer::Admission> admission = {};
  std::optional<framing::HttpFault> fault = {};
};

/// Everything that can be decided on a head which is well-formed, in the order of framing::HttpFault.
HttpPass pass_of(const framing::HttpHead& head, const HttpGate& gate);

}  // namespace duet::app
