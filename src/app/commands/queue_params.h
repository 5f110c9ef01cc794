#pragma once

#include <boost/json/object.hpp>

#include "app/cli/command_line.h"

namespace duet::app {

/// Adds --delay or --at of the command line to params of task.submit and task.edit. Throws Failure.
void add_start_time(boost::json::object& params, const CommandLine& line);

/// What --label says: the value of each name.
boost::json::object labels_given(const CommandLine& line);

}  // namespace duet::app
