#pragma once

#include <string>
#include <string_view>

namespace duet::app {

/// A task's id from what people write: `3` is `task-3`. Anything else stays as it is.
std::string task_name(std::string_view word);

}  // namespace duet::app
