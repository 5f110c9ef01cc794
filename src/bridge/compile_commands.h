#pragma once

#include <optional>
#include <string>

#include "bridge/definition.h"

namespace duet::bridge {

/// clangd needs to know how files are compiled, and looks for that in the folders above a file and in their `build`.
/// CMake puts it into whatever folder it builds in, so it is looked for in `build*/` and `build/*/` of the root, too.

bool is_clangd(const Definition& definition);

/// The folder that clangd is to be told of: the one with the newest `compile_commands.json`. None: the root has what
/// clangd finds by itself, or its `.clangd` says where it is, which the folder would overrule; or there is nothing.
std::optional<std::string> find_compile_commands(const std::string& root);

/// Whether clangd finds by itself how a file is compiled, or is told by a `.clangd`.
bool finds_compile_commands(const std::string& path);

/// Why its answers may be wrong without, and the cure.
inline constexpr char no_compile_commands[] =
    "clangd found no compile_commands.json, so errors about includes and flags may be false: "
    "'cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON' makes one in the build folder";

}  // namespace duet::bridge
