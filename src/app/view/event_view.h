#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "app/view/text_style.h"
#include "duet/base/clock.h"

namespace duet::app {

/// One event for people, on one line without its end: when, what it is about, what happened and how, as
/// `14:02:11  task-7    failed     claude  exit 1  after 2m 3s`. `happened` counts for events that do not say when they
/// happened; none: nobody knows.
std::string event_line(std::string_view method, const boost::json::object& params, const TextStyle& style,
                       std::optional<base::UtcTime> happened, base::UtcTime now);

}  // namespace duet::app
