#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

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
  Pace pace = {};
  std::optional<Schedule> schedule = {};
  Effects effects = {};

  bool enabled() const { return switched.value_or(rule.enabled); }
};

/// The rules. What is known of one stays with it when the settings are read again, and across restarts by save() and
/// load(); of a rule that has gone the switch is remembered, should it come back.
class Rulebook {
 public:
  /// Throws RuleFault, and changes nothing.
  void replace(const std::vector<Rule>& rules, base::UtcTime now);

  const std::vector<std::unique_ptr<ActiveRule>>& all() const { return rules_; }
  ActiveRule* find(std::string_view id) const;
  boost::json::array ids() const;

  boost::json::object save() const;
  /// Before the first replace(), which throws if this was not made by save().
  void load(boost::json::object saved) { remembered_ = std::move(saved); }

 private:
  void take_over(ActiveRule& active) const;

  std::vector<std::unique_ptr<ActiveRule>> rules_;
  boost::json::object remembered_;  // by id
};

}  // namespace duet::automation
