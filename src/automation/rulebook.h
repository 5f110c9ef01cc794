#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <tl/expected.hpp>

#include "automation/event.h"
#include "automation/firings.h"
#include "automation/pace.h"
#include "automation/rule.h"
#include "automation/rule_match.h"
#include "automation/schedule.h"
#include "duet/base/clock.h"
#include "task/task.h"

namespace duet::automation {

/// The files of a rule that have come to rest together, as they are told.
struct Burst {
  std::optional<Event> first = {};  ///< stands for all of them
  std::size_t count = 0;
  std::size_t path_bytes = 0;
};

/// What a rule will do when it may: a firing that a cooldown or a task of the rule holds back.
struct Pending {
  Event event;
  Firing firing;  ///< as it is listed meanwhile
};

/// A rule at work, and what is known of it.
struct ActiveRule {
  Rule rule;
  RuleMatch match;
  std::optional<bool> switched = {};  ///< by a client; else it is as the settings say
  std::uint64_t since = 0;            ///< what was in the journal by then does not concern it
  Pace pace = {};
  std::optional<Schedule> schedule = {};
  Burst burst = {};
  std::optional<Pending> pending = {};
  std::set<task::TaskId> live = {};  ///< its tasks that have not ended
  std::size_t submitting = 0;        ///< of them that are on their way to the queue
  std::string chain = {};            ///< what is wrong: it was stopped in a chain; empty: nothing

  bool enabled() const { return switched.value_or(rule.enabled); }
  bool busy() const { return submitting > 0 || !live.empty(); }
};

/// The rules. What is known of one stays with it when the settings are read again, and across restarts by saved() and
/// load(). One that has gone and comes back, as all of a file do that waits to be trusted, goes on where it was, but
/// for what happened meanwhile; after a week only its switch is remembered. One that asks for something else than
/// before, or was off, begins with what happens from now on; its pace stays.
class Rulebook {
 public:
  using Rules = std::vector<std::unique_ptr<ActiveRule>>;
  static constexpr std::chrono::hours longest_absence{7 * 24};  ///< of which a rule comes back as it was

  /// Rules that can be used, or what is wrong with one.
  static tl::expected<Rules, std::string> compile(const std::vector<Rule>& rules);

  /// From now on these; what is new to the book begins now, after this event of the journal.
  void replace(Rules rules, base::UtcTime now, std::uint64_t seq);

  const Rules& all() const { return rules_; }
  ActiveRule* find(std::string_view id) const;
  boost::json::array ids() const;

  /// What is worth keeping of each rule, by its id; empty: nothing any more.
  std::map<std::string, std::string> saved() const;
  static std::string saved(const ActiveRule& active);
  /// Before the first replace().
  void load(std::string id, std::string_view saved);
  /// What waits for rules that have gone never happens.
  void drop_absent(const char* reason);
  /// Firings that waited and never happen, with the reason: their rules are others since the last replace(), or have
  /// been away for too long.
  std::vector<Firing> take_dropped() { return std::exchange(dropped_, {}); }
  /// What the last replace() could not read, as sentences; those rules have begun anew.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  void take_over(ActiveRule& active);
  void forget_long_absent(base::UtcTime now);
  void note_absent(base::UtcTime now);
  void drop(const std::string& id, Firing firing, const char* reason);

  Rules rules_;
  std::map<std::string, std::string> remembered_;  // by id
  std::vector<std::string> faults_;
  std::vector<Firing> dropped_;
};

}  // namespace duet::automation
