#pragma once

#include <string_view>

#include "app/mcp/tool_result.h"
#include "duet/rpc/error.h"

namespace duet::app::mcp {

/// The daemon's own codes.
namespace daemon_code {
inline constexpr int unknown_task = -32000;
inline constexpr int wrong_state = -32001;  ///< of a cancel: the task has ended
inline constexpr int queue_full = -32002;
inline constexpr int missing = -32003;
inline constexpr int server_failed = -32004;
inline constexpr int content_modified = -32801;
}  // namespace daemon_code

/// What a refusal of the daemon means, in the error codes of the tools, with the real names and what to do. Its own
/// codes never come out. Files are shown from `root`.
ToolError tool_error_of(const rpc::Error& error, std::string_view root);

}  // namespace duet::app::mcp
