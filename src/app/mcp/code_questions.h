#pragma once

#include <optional>
#include <string>

#include <boost/json/object.hpp>
#include <tl/expected.hpp>

#include "app/mcp/arguments.h"
#include "app/mcp/page.h"
#include "app/mcp/scope.h"
#include "app/mcp/tools.h"

namespace duet::app::mcp {

// What the tools about code share when they ask a daemon.

Call::How about_code(bool keeps_refusals = false);

/// As many places as a daemon tells.
inline constexpr std::int64_t most_told = 10'000;

/// A server may be on this process's PATH and not on the daemon's.
void add_path(boost::json::object& params);

/// The file of a place. `a.cpp:7:21` fills what was not given, unless a file is called so.
tl::expected<Scope::Target, ToolError> locate_place(Call& call, NamedPlace& place);

/// A file that was located, with its links resolved, is what it was; else the call has been answered. A link that took
/// its place may lead anywhere.
bool is_still_there(const CallPointer& call, const std::string& path);

/// The progress of the call tells what the servers of `root` do.
void tell_of_servers(const CallPointer& call, const std::string& root);

/// Where the asked page begins; none if the cursor is bad, and then the call has been answered.
std::optional<PagePlace> page_place(const CallPointer& call, const Arguments& arguments);
void finish_page(const CallPointer& call, const Arguments& arguments, PagePlace from, const Page& page);

}  // namespace duet::app::mcp
