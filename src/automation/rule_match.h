#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "automation/cron.h"
#include "automation/event.h"
#include "automation/glob.h"
#include "automation/regex.h"
#include "automation/rule.h"

namespace duet::automation {

/// A rule that cannot be used: which of its settings is wrong, and why.
class RuleFault : public std::invalid_argument {
 public:
  RuleFault(std::string setting, const std::string& text) : std::invalid_argument(text), setting_(std::move(setting)) {}
  const std::string& setting() const { return setting_; }  ///< `trigger.cron`

 private:
  std::string setting_;
};

/// A rule's trigger and conditions, checked and ready to be compared with events.
///
/// A condition on a field that the event does not have, or that is null, holds only for `neq` and `not_exists`. Numbers
/// are compared as numbers, texts by their bytes; a number and a text are never equal. `contains` looks for a part of a
/// text or a member of a list; `matches` is a Regex.
class RuleMatch {
 public:
  /// Throws RuleFault. `default_agent` is who gets the work of a rule that names none.
  explicit RuleMatch(const Rule& rule, std::string_view default_agent = {});

  bool accepts(const Event& event) const;
  bool watches_files() const;
  /// Whether a change of this file could be accepted.
  bool wants_file(std::string_view path) const;
  const std::optional<Cron>& schedule() const { return schedule_; }

 private:
  struct Check {
    Condition condition;
    std::optional<Regex> regex = {};
    bool holds(const Event& event) const;
  };

  bool path_matches(std::string_view path) const { return !pattern_ || pattern_->matches(path); }

  std::string source_;
  std::string type_;
  std::optional<Glob> pattern_;
  std::optional<Cron> schedule_;
  std::vector<Check> checks_;
};

}  // namespace duet::automation
