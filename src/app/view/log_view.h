#pragma once

#include <string>
#include <string_view>

namespace duet::app {

/// A line of the daemon's log as a JSON object: `time`, `level` and `message`, which has the fields behind it as they
/// stand in the line. A line that is none of the log's own is a `message` alone.
std::string log_line_as_json(std::string_view line);

}  // namespace duet::app
