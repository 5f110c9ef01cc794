#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "automation/work.h"
#include "duet/base/clock.h"

namespace duet::automation {

/// A rule that has fired, or was held back.
struct Firing {
  std::string id;
  std::string rule_id;
  base::UtcTime at = {};
  std::size_t count = 1;    ///< events that are in it
  std::string reason = {};  ///< why it was held back; empty: it has fired
  std::string task_id = {};
  std::optional<Work> awaiting = {};  ///< approval
  bool kept = true;                   ///< false: not shown before it is on disk

  bool held() const { return !reason.empty(); }
};

/// The last firings of all rules, newest first. When there are too many, the oldest of the rule with most of them goes,
/// those that wait for approval last, so that a busy rule hides no other.
class Firings {
 public:
  static constexpr std::size_t most_kept = 100;

  std::string next_id() { return "firing-" + std::to_string(++last_id_); }

  void add(Firing firing);
  Firing* find(std::string_view id);
  const std::deque<Firing>& all() const { return firings_; }

  /// As far as the list goes back.
  std::optional<base::UtcTime> last_fired(std::string_view rule_id) const;
  /// The ids of those that wait for approval.
  boost::json::array awaiting() const;
  /// `[{id, ruleId, at, outcome, reason?, count, taskId?}]`
  boost::json::array shown() const;

  /// All of it, and back. What load() cannot read throws.
  boost::json::object save() const;
  void load(const boost::json::object& saved);

 private:
  void drop_one();

  std::uint64_t last_id_ = 0;
  std::deque<Firing> firings_;
};

}  // namespace duet::automation
