#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace duet::bridge {

/// `file:` addresses of absolute paths, whatever bytes a name has. Servers spell the same path differently, so paths
/// are compared, never addresses.
std::string uri_of(std::string_view path);

/// nullopt: not the address of a file on this machine. A `%` that begins no escape stands for itself.
std::optional<std::string> path_of(std::string_view uri);

}  // namespace duet::bridge
