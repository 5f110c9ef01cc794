#pragma once

#include <string>
#include <string_view>

#include <boost/json/object.hpp>
#include <tl/expected.hpp>

#include "duet/base/clock.h"

namespace duet::app {

/// What can be changed of a queued task, as a text for an editor: a line for each field, and below `---` the prompt.
///
/// Lines above that begin with `#` do not count.
std::string edit_form(const boost::json::object& record);

/// The params of task.edit for what differs between two such texts, without the task's id; empty if nothing does. The
/// error says what is wrong, and in which line.
tl::expected<boost::json::object, std::string> edit_params(std::string_view before, std::string_view after,
                                                           base::UtcTime now);

}  // namespace duet::app
