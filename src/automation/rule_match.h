#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "automation/cron.h"
#include "automation/event.h"
#include "automation/rule.h"
#include "pattern/glob.h"
#include "pattern/regex.h"

namespace duet::automation {

/// A rule's trigger and conditions, ready to be compared with events.
///
/// A condition on a field that the event does not have, or that is null, holds only for `neq` and `not_exists`. A
/// number and a text are never equal; `gt` and the like are for numbers, `contains` is for texts, `matches` is a Regex.
class RuleMatch {
 public:
  /// Or what is wrong with a glob, a schedule or a regular expression. Whether the trigger makes sense is for the
  /// settings to say.
  static tl::expected<RuleMatch, std::string> of(const Rule& rule);

  bool accepts(const Event& event) const;
  /// What the trigger and the conditions ask for, each with whether it holds.
  struct Verdict {
    std::string asks;
    bool holds;
  };
  std::vector<Verdict> explain(const Event& event) const;
  bool watches_files() const;
  /// Whether a change of this file could be accepted.
  bool wants_file(std::string_view path) const { return watches_files() && (!pattern_ || pattern_->matches(path)); }
  const std::optional<Cron>& schedule() const { return schedule_; }

 private:
  struct Check {
    Condition condition;
    std::optional<pattern::Regex> regex = {};
    bool holds(const Event& event) const;
  };
  explicit RuleMatch(const Trigger& trigger)
      : source_(trigger.source), type_(trigger.type), pattern_text_(trigger.pattern) {}
  bool trigger_holds(const Event& event) const;
  std::string read(const Rule& rule);

  std::string source_;
  std::string type_;
  std::string pattern_text_;
  std::optional<pattern::Glob> pattern_;
  std::optional<Cron> schedule_;
  std::vector<Check> checks_;
};

}  // namespace duet::automation
