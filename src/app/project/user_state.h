#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "duet/base/fd.h"

namespace duet::app {

/// The user's state folder, `duet-rpc` in $XDG_STATE_HOME or in ~/.local/state, where things are kept that are no part
/// of a project. Empty: neither XDG_STATE_HOME nor HOME is an absolute path.
std::string user_state_path();

/// Where the state of a project's daemon is if it is not to be in the project: below the user's state folder, by the
/// project's path. Throws Failure if there is no such folder.
std::string user_state_of(const std::string& project_path);

/// A folder below it, or itself for an empty name. It and what is above it is made (0700) if it is not there. Throws
/// Failure if that cannot be done, if the folder belongs to somebody else, or if others may write to it. Other places
/// of the user are made in the same way: `variable` is what moves them.
base::Fd make_user_folder(const std::string& user_state, const std::string& name = {},
                          const std::string& variable = "XDG_STATE_HOME");

/// Held while files of a folder are changed, so that two who do it at once do not undo each other: the lock (flock) of
/// `name` in it, which is made. Waits for it up to 10 s; throws Failure, which says where it is by `place`.
base::Fd lock_in(int folder, const std::string& name, const std::string& place);

/// What becomes of a file that has the name already.
enum class WhatIsThere : std::uint8_t { goes, stays };

/// Replaces a file of a folder at once, so that a reader finds the old or the new one whole, also after a power cut.
/// False: errno says why not; it is EEXIST for a file that is there and stays.
[[nodiscard]] bool replace_file(int folder, const std::string& name, std::string_view text,
                                WhatIsThere there = WhatIsThere::goes);

/// Why a file or folder with this status could have been written by somebody else; none if it could not.
std::optional<std::string> why_not_ours(unsigned int owner, unsigned int mode);

}  // namespace duet::app
