#pragma once

#include <string_view>

#include "app/mcp/tool_result.h"
#include "duet/rpc/error.h"

namespace duet::app::mcp {

/// What a refusal of the daemon means, in the error codes of the tools, with the real names and what to do. Its own
/// codes never come out. Files are shown from `root`.
ToolError tool_error_of(const rpc::Error& error, std::string_view root);

}  // namespace duet::app::mcp
