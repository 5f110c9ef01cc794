#pragma once

#include <string>
#include <string_view>

#include "app/doors/mcp_source.h"
#include "duet/framing/http_head.h"
#include "duet/rpc/error.h"

namespace duet::app {

// What `POST /mcp` has in its head and in its answers, as the Streamable HTTP transport of MCP says.

struct McpPost {
  McpFields fields = {};
  bool takes_json = false;
  bool takes_stream = false;
  int unread_comments = 0;  ///< how often in a row a comment was due while its reader had not read what came before
};

/// Owns what it says; the head may go.
McpPost mcp_post_of(const framing::HttpHead& head);

/// The status that goes with an answer, which is one JSON text: 200 unless its error has another one.
unsigned mcp_status(std::string_view answer);

/// The answer to what has no id.
std::string mcp_refusal(const rpc::Error& error);

/// A message as an event of a stream.
std::string mcp_event(std::string_view message);

}  // namespace duet::app
