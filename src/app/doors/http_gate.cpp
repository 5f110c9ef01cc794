#include "app/doors/http_gate.h"

#include "app/doors/page.h"
#include "app/doors/roles.h"
#include "app/doors/websocket_handshake.h"
#include "duet/framing/frame.h"
#include "duet/framing/http_text.h"

namespace duet::app {
namespace {

using framing::HttpFault;
using framing::HttpHead;

constexpr std::uint64_t most_of_login = 1024;

struct HttpPlace {
  std::string_view path;
  HttpRoute route;
  std::string_view allow;
  bool for_all = false;  // needs no token
  bool is_of_session = false;
};
constexpr HttpPlace http_places[] = {
    {"/login", HttpRoute::login, "POST", true, true},
    {"/logout", HttpRoute::logout, "POST", false, true},
    {"/rpc", HttpRoute::rpc, "POST"},
    {"/mcp", HttpRoute::mcp, "POST"},
    {"/events", HttpRoute::events, "GET"},
    {"/ws", HttpRoute::websocket, "GET"},
    {"/metrics", HttpRoute::metrics, "GET"},
};
constexpr HttpPlace page_place{"/", HttpRoute::page, "GET, HEAD", true};

const HttpPlace* place_at(std::string_view path) {
  for (const HttpPlace& place : http_places) {
    if (place.path == path) return &place;
  }
  return find_page_file(path) != nullptr ? &page_place : nullptr;
}

bool allows(const HttpPlace& place, std::string_view method) {
  return method == place.allow || (place.route == HttpRoute::page && (method == "GET" || method == "HEAD"));
}

std::optional<std::string_view> bearer_of(const HttpHead& head) {
  constexpr std::string_view scheme = "bearer ";
  if (head.fields.count("authorization") != 1) return std::nullopt;
  const std::string_view value = *head.fields.find("authorization");
  if (!framing::same_word(value.substr(0, scheme.size()), scheme)) return std::nullopt;
  return framing::without_blanks(value.substr(scheme.size()));
}

std::optional<HttpFault> mcp_fault(const HttpHead& head) {
  const bool can_be_answered =
      framing::accepts(head, "application/json") || framing::accepts(head, "text/event-stream");
  return can_be_answered ? std::nullopt : std::optional(HttpFault::accept);
}

std::optional<HttpFault> let_in(HttpPass& pass, const HttpHead& head, const HttpGate& gate) {
  if (gate.shown) {
    pass.admission = gate.shown;
    return is_role(gate.shown->role) ? std::nullopt : std::optional(HttpFault::role);
  }
  std::optional<std::string_view> token = bearer_of(head);
  if (pass.route == HttpRoute::websocket) {
    if (count_websocket_tokens(head) + (token ? 1 : 0) > 1) return HttpFault::bad_upgrade;
    if (!token) token = websocket_token(head);
  }
  pass.admission = token ? gate.admit(*token) : nullptr;
  return pass.admission ? std::nullopt : std::optional(HttpFault::token);
}

std::optional<HttpFault> fault_in(HttpPass& pass, const HttpHead& head, const HttpGate& gate) {
  if (const auto fault = framing::host_fault(head, gate.names)) return fault;
  if (const auto fault = framing::origin_fault(head, gate.scheme)) return fault;
  const HttpPlace* const place = place_at(head.path);
  if (place == nullptr || (place->is_of_session && gate.shown)) return HttpFault::path;
  if (place->route == HttpRoute::mcp && !gate.has_mcp) return HttpFault::path;
  pass.route = place->route;
  pass.allow = place->allow;
  if (!allows(*place, head.method)) return HttpFault::method;
  if (!place->for_all || gate.shown) {
    if (const auto fault = let_in(pass, head, gate)) return fault;
  }
  if (const auto fault = framing::content_fault(head)) return fault;
  const std::uint64_t most = place->is_of_session ? most_of_login : framing::max_body;
  if (const auto fault = framing::length_fault(head, most)) return fault;
  if (const auto fault = framing::expectation_fault(head)) return fault;
  return place->route == HttpRoute::mcp ? mcp_fault(head) : std::nullopt;
}

}  // namespace

HttpPass pass_of(const HttpHead& head, const HttpGate& gate) {
  HttpPass pass;
  pass.fault = fault_in(pass, head, gate);
  return pass;
}

}  // namespace duet::app
