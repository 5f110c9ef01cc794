#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "process/launch.h"

namespace duet::automation {

/// Something that has happened and may set off rules.
struct Event {
  std::string source;  ///< watch, schedule, task, daemon
  std::string type;    ///< `file.modify` and the like
  boost::json::object payload = {};
  unsigned depth = 0;      ///< how many tasks of rules led to it, one through the other
  std::string cause = {};  ///< the last one of those tasks
};

/// `source`, `type`, or a member of the payload, as in `payload.path`; none if the event has no such field.
std::optional<boost::json::value> field_of(const Event& event, std::string_view field);

/// What field_of() finds in the events of a source, if it has a value.
std::vector<std::string> fields_of_source(std::string_view source);

/// A value as people write it: text without quotes, nothing for null.
std::string plain_text(const boost::json::value& value);

/// What a task is told of its event: `DUET_TYPE`, and for each member of the payload `DUET_PATH`, `DUET_EXIT_CODE`, …
process::Environment environment_of(const Event& event);

}  // namespace duet::automation
