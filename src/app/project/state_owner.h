#pragma once

#include <optional>
#include <string>

#include "app/project/project.h"
#include "app/project/state_folder.h"

namespace duet::app {

/// Why a daemon must not go by what is in the state folder, with the cure, on one line; none if it may. `.aiwg/daemon`
/// stands in the project and holds tasks that a daemon starts by itself. Files that git has checked out there came with
/// somebody's commit (docs/trust.md).
std::optional<std::string> why_not_our_state(const Project& project, const StateFolder& folder);

}  // namespace duet::app
