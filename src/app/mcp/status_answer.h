#pragma once

#include <optional>
#include <string_view>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "app/mcp/tool_result.h"

namespace duet::app::mcp {

/// What the daemon has told; null is what it did not.
struct StatusParts {
  boost::json::value daemon = nullptr;      ///< `daemon.status`
  boost::json::value agents = nullptr;      ///< `agent.list`
  boost::json::value servers = nullptr;     ///< `lsp.list`
  boost::json::value counts = nullptr;      ///< `task.stats`
  boost::json::value automation = nullptr;  ///< `automation.status`
};

/// Of what `daemon.status` says: nobody trusted the project's settings.
bool is_untrusted(const boost::json::value& daemon);

/// The structured result of `project_status`, without agents and events. What was not told is left out.
boost::json::object status_of_parts(const StatusParts& parts, std::string_view root);
/// No daemon runs, and only it knows of tasks and rules. `refusal`: why the next call will not start one.
boost::json::object status_without_daemon(std::string_view root, bool is_trusted,
                                          const std::optional<ToolError>& refusal);

/// With its text; events that do not fit are left for the next call, which `next_event` leads to.
ToolResult status_answer(boost::json::object status, std::size_t max_bytes);

}  // namespace duet::app::mcp
