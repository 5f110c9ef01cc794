#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <tl/expected.hpp>

#include "automation/effects.h"
#include "automation/pace.h"
#include "automation/rule.h"
#include "automation/rule_match.h"
#include "automation/schedule.h"
#include "duet/base/clock.h"

namespace duet::automation {

/// A rule at work, and what is known of it.
struct ActiveRule {
  Rule rule;
  RuleMatch match;
  std::optional<bool> switched = {};  ///< by a client; else it is as the settings say
  std::uint64_t since = 0;            ///< what was in the journal by then does not concern it
  Pace pace = {};
  std::optional<Schedule> schedule = {};
  Effects effects = {};

  bool enabled() const { return switched.value_or(rule.enabled); }
};

/// The rules. What is known of one stays with it when the settings are read again, and across restarts by saved() and
/// load(); of a rule that has gone the switch is remembered, should it come back. One that asks for something else than
/// before, or was off, begins with what happens from now on.
class Rulebook {
 public:
  using Rules = std::vector<std::unique_ptr<ActiveRule>>;

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
  /// What the last replace() could not read, as sentences; those rules have begun anew.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  void take_over(ActiveRule& active);

  Rules rules_;
  std::map<std::string, std::string> remembered_;  // by id
  std::vector<std::string> faults_;
};

}  // namespace duet::automation
