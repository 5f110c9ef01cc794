#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace duet::app::mcp {

/// What a `duet://` address names.
struct ResourceName {
  enum class Kind : std::uint8_t { status, tasks, task, output };
  Kind kind = Kind::status;
  std::string task = {};  ///< `task-7`, or a handle; of the last two
};

/// None: there is no such resource, whichever tasks there are.
std::optional<ResourceName> parse_resource(std::string_view uri);

/// The members of the results of `resources/list` and `resources/templates/list`, as JSON without braces.
std::string_view resource_list();
std::string_view template_list();

/// The member `contents` of a read.
std::string contents_of(std::string_view uri, const ResourceName& name, std::string_view text);

}  // namespace duet::app::mcp
