#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "app/project/project.h"

namespace duet::app {

/// Calls `each` with every path in an index of git, the file that says what is checked out (gitformat-index(5)), until
/// it returns true. Returns that path; none if there is no such path, or if the bytes are no index.
std::optional<std::string> find_in_index(std::string_view index, const std::function<bool(std::string_view)>& each);

/// The first file of the project that `wanted` tells by its path from the project's root and that git has checked out:
/// its content came with a commit. `wanted` gets paths in small letters (ASCII): where the file system does not tell
/// large from small ones, `.AIWG` is `.aiwg`. The answer is spelt as git has it. The nearest `.git` upward counts that
/// is ours, root's or of the owner of the project's folder. git itself is not run: it would do what the repository's
/// configuration says. An index that is split or cannot be read has none.
std::optional<std::string> find_tracked(const Project& project, const std::function<bool(std::string_view)>& wanted);

}  // namespace duet::app
