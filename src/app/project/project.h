#pragma once

#include <optional>
#include <string>

#include "duet/base/fd.h"

namespace duet::app {

/// The folder that a daemon and its clients belong to.
struct Project {
  std::string root;    ///< absolute, without links; of any length, so for people and for the start of a name only
  base::Fd directory;  ///< the same, opened with O_PATH: what is below is reached with openat() and the like, or by a
                       ///< path below /proc/self/fd
};

/// `given` is the value of --project. Without it: the nearest folder, from the working directory upward, that holds
/// `.aiwg/` or `.git`; else the working directory itself. The search passes over $HOME and over folders of other users.
/// Throws Failure. For one thread at the start: it may change the working directory for a moment.
Project find_project(const std::optional<std::string>& given);

/// The nearest folder from `folder` upward that is a project by the same rules; none if there is none.
std::optional<Project> nearest_project(const std::string& folder);

/// Where the project is now: it may have been moved since it was found. Empty: that cannot be told.
std::string present_path(const Project& project);

/// Of any length. Throws Failure, with what to do, if it is gone or cannot be read.
std::string working_directory(const std::string& remedy = "change to another one");

}  // namespace duet::app
