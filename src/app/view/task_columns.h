#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <tl/expected.hpp>

#include "app/view/table.h"
#include "duet/base/clock.h"

namespace duet::app {

/// The columns of `task list`, by name.
using TaskColumns = std::vector<std::string>;

/// Of `id,state,prompt`. The error is a sentence that names those there are.
tl::expected<TaskColumns, std::string> parse_columns(std::string_view list);

/// What is worth showing of these records on a terminal of that width; without one what a program may expect.
TaskColumns usual_columns(const boost::json::array& records, std::optional<std::size_t> width);

/// The last line that a running task has written.
using LatestLine = std::function<std::string(const std::string& id)>;

Table task_table(const boost::json::array& records, const TaskColumns& columns, base::UtcTime now,
                 const LatestLine& latest_line);

}  // namespace duet::app
