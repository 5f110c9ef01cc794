#pragma once

#include <optional>
#include <string_view>

#include <boost/json/object.hpp>

#include "app/doors/mcp_source.h"
#include "duet/rpc/error.h"

namespace duet::app::mcp {

/// Why the head of an HTTP request does not go with its body: whoever stands between client and server, and looks at
/// the head alone, must see what is done.
///
/// `version` is the body's own, of the modern era. Its requests must repeat version and method, and what a tool or a
/// resource is called; those of the legacy era need not, but what they repeat must be right, and a version must be one
/// that is spoken.
std::optional<rpc::Error> fault_of_fields(const McpFields& fields, std::string_view method,
                                          const boost::json::object& params, std::optional<std::string_view> version);

/// The same for the text of a message that is a notification. It need repeat nothing.
std::optional<rpc::Error> fault_of_notification(const McpFields& fields, std::string_view text);

}  // namespace duet::app::mcp
