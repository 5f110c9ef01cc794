#pragma once

#include <string>
#include <string_view>

#include <tl/expected.hpp>

#include "duet/rpc/error.h"
#include "task/task.h"

// What a task may bring to another machine: a folder inside the project, and no PATH.

namespace duet::task::postgres {

/// Makes of a submission what any worker can do: its folder is told from the project's root, and PATH stays behind. One
/// that is to run here keeps both. The error says of a folder outside of the project what helps.
tl::expected<void, rpc::Error> make_portable(Submission& submission, const std::string& project);

/// The folder on this machine; empty is the project itself.
std::string local_folder(const std::string& project, const std::string& folder);

/// The environment of a submission as JSON text; empty: it has none.
std::string env_text(const Submission& submission);
void add_env(Submission& submission, std::string_view env);

}  // namespace duet::task::postgres
