#pragma once

#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/view/table.h"
#include "duet/base/clock.h"

namespace duet::app {

/// A task's record, as the daemon gives it, for people. What a record does not have is an empty text.

/// A member of a record: a text as it is, other values as JSON, nothing for null.
std::string member_text(const boost::json::object& record, std::string_view name);
/// Empty if it is not there or no list.
const boost::json::array& member_list(const boost::json::object& record, std::string_view name);

bool has_ended(const boost::json::object& record);
/// What `task wait` and --follow exit with: the task's own code, 128 and the signal's number, 130 if it was cancelled;
/// never 0 for one that failed.
int exit_code_of(const boost::json::object& record);

/// `completed`, `failed: exit code 7`
std::string outcome_of(const boost::json::object& record);
/// How long it has run, or ran.
std::string run_time_of(const boost::json::object& record, base::UtcTime now);
/// All of it that matters to people, a line each.
std::string task_page(const boost::json::object& record, const TextStyle& style, base::UtcTime now);
/// Of one that was told to end: `task-1 cancelled`, or `task-1 cancelling` as long as something of it runs.
std::string cancel_line(const boost::json::object& record);
Table::Cell state_cell(const boost::json::object& record);

}  // namespace duet::app
