#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <boost/json/object.hpp>

#include "task/postgres/worker_memory.h"

namespace duet::task::postgres {

/// Why a server is not the one to work with, for people.
struct Objection {
  enum class Kind : std::uint8_t {
    standby,
    version,      ///< of the schema
    project,      ///< the queue is another project's
    copy,         ///< of a schema that was made elsewhere
    old_primary,  ///< another one has taken over
    backup,       ///< it lacks what was seen
  };

  Kind kind;
  std::string why;

  /// It may be the right one a moment later, or another host of the same address is.
  bool may_pass() const { return kind == Kind::standby || kind == Kind::old_primary; }
};

/// What this program speaks.
inline constexpr int queue_protocol = 1;

/// All that speaks against a server that answered so to `hello_v1`, the weightiest first; none: it is the one that is
/// remembered, or as good. Pure.
std::vector<Objection> objections_to(const boost::json::object& hello, const WorkerMemory& memory,
                                     const std::string& project);

}  // namespace duet::task::postgres
