#pragma once

#include <string>
#include <string_view>

#include "duet/peer/outcome.h"
#include "duet/rpc/error.h"

namespace duet::app {

/// What a daemon's refusal means, on one line: which method, what was wrong with it, and what would be right. Takes any
/// `data`, also that of a daemon of another version.
std::string refusal_text(std::string_view method, const rpc::Error& error);

/// The daemon does not know the task: it never did, or the task was removed.
bool is_unknown_task(const peer::Outcome& outcome);

}  // namespace duet::app
