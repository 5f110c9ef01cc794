#include "duet/framing/http_fault.h"

#include <array>
#include <cstddef>

namespace duet::framing {
namespace {

// In the order of HttpFault.
constexpr std::array<HttpRefusal, 25> http_refusals = {{
    {403, "other-user", "This daemon belongs to another user.", true},
    {503, "busy", "Too many connections are open.", true, "Retry-After: 1\r\n"},
    {408, "too-slow", "The request did not arrive in time.", true},
    {414, "target-too-long", "The target may have 2048 bytes.", true},
    {431, "head-too-large", "The head may have 16384 bytes and 100 fields.", true},
    {400, "malformed", "The request is malformed.", true},
    {505, "version", "The version must be HTTP/1.1.", true},
    {411, "length-required", "A body needs Content-Length; no Transfer-Encoding is taken.", true},
    {403, "host", "The Host is no name of this daemon.", false},
    {403, "origin", "Another origin may not ask this.", false},
    {404, "not-found", "There is nothing at this path.", false},
    {405, "method", "This path has other methods; see Allow.", false},
    {401, "token", "A valid token is needed.", false, "WWW-Authenticate: Bearer\r\n"},
    {403, "role", "The certificate has no role here.", false},
    {415, "content-type", "The body must be application/json in UTF-8, without Content-Encoding.", false},
    {413, "too-large", "The body is too large.", true},
    {417, "expectation", "The only expectation taken is 100-continue.", true},
    {406, "accept", "Answers are application/json or text/event-stream; Accept has neither.", false},
    {400, "query", "The query has a name or a value that is not known here.", false},
    {401, "code", "The login code is not known, or has expired.", false},
    {401, "used", "The login code was used before; what it gave has ended.", false},
    {429, "too-many-codes", "Too many wrong login codes; try again later.", false},
    {426, "upgrade", "This path speaks WebSocket, version 13.", false,
     "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"},
    {400, "upgrade", "The WebSocket handshake is faulty.", false},
    {500, "failed", "The daemon failed to answer.", true},
}};

static_assert(static_cast<std::size_t>(HttpFault::failed) + 1 == http_refusals.size());

}  // namespace

const HttpRefusal& refusal_of(HttpFault fault) { return http_refusals[static_cast<std::size_t>(fault)]; }

}  // namespace duet::framing
