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
  unsigned depth = 0;      ///< how many tasks and programs of rules led to it, one through the other
  std::string cause = {};  ///< the last one of them: a task, or the firing that has run the program
  /// What happened, told so that every daemon of a shared queue tells it alike; empty: it happened here only.
  std::string occasion = {};
};

/// The files of a burst: as many of its paths as fit. They are a member of the payload, `paths`.
inline constexpr std::size_t most_paths = 1'000;
inline constexpr std::size_t most_path_bytes = 32 * 1024;
/// Adds those of another event of the same rule. What else the payload has stays.
void add_paths(Event& event, const Event& other);
/// Of several files one that is there has more to say than one that has gone: the event takes over the type and `path`
/// of such another one.
void prefer_what_is_there(Event& event, const Event& other);

boost::json::object save_event(const Event& event);
/// Throws if it is not what save_event() made.
Event load_event(const boost::json::object& saved);

/// `source`, `type`, or a member of the payload, as in `payload.path`; none if the event has no such field.
std::optional<boost::json::value> field_of(const Event& event, std::string_view field);

/// What field_of() finds in the events of a source, if it has a value.
std::vector<std::string> fields_of_source(std::string_view source);

/// A value as people write it: text without quotes, nothing for null.
std::string plain_text(const boost::json::value& value);

/// What a task is told of its event: `DUET_TYPE`, and for each member of the payload `DUET_PATH`, `DUET_EXIT_CODE`, …
/// `DUET_PATHS` has one a line, without those that have a line's end in their name; `DUET_PATHS_0` has all, so that
/// `printf %b` gives each with a NUL behind it.
process::Environment environment_of(const Event& event);

}  // namespace duet::automation
