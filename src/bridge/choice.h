#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bridge/definition.h"

namespace duet::bridge {

/// The servers that need no settings.
std::vector<Definition> well_known_servers();

/// Those of the settings, in their order, then the well-known ones that the settings do not name. What a definition of
/// the settings leaves out (`command`, `files`, `roots`) is taken from the well-known one of its name.
std::vector<Definition> with_well_known(std::vector<Definition> settings);

/// The first definition with a glob that fits the file's name; none: nullptr. What is installed plays no part.
const Definition* choose_server(const std::vector<Definition>& definitions, std::string_view path);

/// The folder a server is started in for a file. The first of `markers` that some folder upward from the file holds
/// decides; the search ends at `project`, or for a file outside of it at the file system's root. Without a hit it is
/// `project`.
std::string find_root(const std::vector<std::string>& markers, const std::string& path, const std::string& project);

/// What LSP calls the language of a file, by its name; `plaintext` for those nobody knows.
std::string_view language_of(std::string_view path);

}  // namespace duet::bridge
