#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "duet/base/clock.h"
#include "task/task.h"

namespace duet::simulate {

/// What must keep tasks from starting, known apart from the daemon: pauses, holds, delays, usage limits; and whose turn
/// it is among groups.
///
/// Only what is certain counts: a pause that was acknowledged, and that nobody has asked to end since. What a daemon
/// did not live to answer may hold or not. An acknowledged one outlives daemons and power cuts.
class ControlTruth {
 public:
  explicit ControlTruth(const base::Clock& clock) : clock_(clock) {}

  /// The names of what can be shut.
  static std::string whole_queue() { return "queue"; }
  static std::string group(const std::string& name) { return "group " + name; }
  static std::string task(task::TaskId id) { return task::to_text(id); }

  /// Somebody asks to shut or to open it; the number is for the answer.
  std::uint64_t asked(const std::string& name, bool shut);
  void answered(const std::string& name, std::uint64_t number, bool shut);
  bool is_certainly_shut(const std::string& name) const;
  bool is_certainly_open(const std::string& name) const;

  /// A task was asked for; another group counts from an edit on.
  void takes(task::TaskId id, const task::Submission& submission, base::TimePoint asked_at);
  void editing(task::TaskId id) { ++places_[id].edits; }
  void edited(task::TaskId id, bool kept, const std::string& group);
  /// In place: it is not held any more, and does not wait for its time.
  void queued_again(task::TaskId id);
  /// None if it is not certain.
  std::optional<std::string> group_of(task::TaskId id) const;

  void agent_held(const std::string& agent, base::UtcTime until) { held_[agent] = until; }
  void agent_released(const std::string& agent) { held_.erase(agent); }

  /// What is wrong with a start now; none if nothing is. `jumped`: the clock on the wall, a while ago.
  std::optional<std::string> why_not(task::TaskId id, const std::string& agent, bool jumped) const;
  /// A task of this group starts: a group whose turn it was, of those that could start something.
  std::optional<std::string> passed_over(const std::string& group, const std::set<std::string>& others);
  /// Turns begin anew with a daemon, and when it may have tried to start something in vain.
  void forget_turns() { last_start_.clear(); }

 private:
  struct Switch {
    std::uint64_t shut_asked = 0;
    std::uint64_t open_asked = 0;
    std::uint64_t shut_answered = 0;
    std::uint64_t open_answered = 0;
  };
  struct Place {
    std::string group = task::default_group;
    int edits = 0;  // that are not answered
    bool in_doubt = false;
    std::optional<base::TimePoint> earliest = {};
    std::optional<base::UtcTime> not_before = {};
  };

  const base::Clock& clock_;
  std::uint64_t requests_ = 0;
  std::map<std::string, Switch> switches_;
  std::map<task::TaskId, Place> places_;
  std::map<std::string, base::UtcTime> held_;
  std::map<std::string, std::uint64_t> last_start_;
  std::uint64_t starts_ = 0;
};

}  // namespace duet::simulate
