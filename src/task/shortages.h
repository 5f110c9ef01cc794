#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "duet/base/clock.h"
#include "task/task.h"

namespace duet::task {

/// What keeps tasks from starting though nothing else does: the machine has no room for one more process, or this
/// daemon cannot keep the limits that a task was accepted with.
///
/// The machine's shortage concerns every task. It is known until something starts, or until none of those that met it
/// is tried any more. Limits concern their task alone. For the supervisor; it decides nothing.
class Shortages {
 public:
  struct Shortage {
    std::string what;  ///< for people
    base::UtcTime since;
  };

  explicit Shortages(const base::Clock& clock) : clock_(clock) {}

  /// It was to be started, and the machine had no room for it.
  void met_by(TaskId id, const std::string& what);
  /// Its time has come, but something else keeps it from starting: it does not show any more whether there is room.
  void not_tried(TaskId id);
  /// So there is room.
  void one_has_started();
  /// Why they cannot be kept; empty: they can.
  void set_limits(TaskId id, const std::string& problem);
  /// It has left the queue for good.
  void forget(TaskId id);

  const std::optional<Shortage>& of_machine() const { return machine_; }
  /// Null: its limits can be kept, or that was not tried yet.
  const Shortage* of_limits(TaskId id) const;
  /// All of them for people, with since when; empty: there are none.
  std::string text() const;

 private:
  const base::Clock& clock_;
  std::optional<Shortage> machine_;
  std::set<TaskId> met_by_;  // and are tried again
  std::map<TaskId, Shortage> limits_;
};

}  // namespace duet::task
