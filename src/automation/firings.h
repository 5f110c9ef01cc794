#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "automation/work.h"
#include "duet/base/clock.h"

namespace duet::automation {

/// A rule that has fired, or was held back.
struct Firing {
  std::uint64_t number = 0;
  std::uint64_t turn = 0;  ///< when it happened, among all: one that waited comes later than its number tells
  std::string rule_id = {};
  base::UtcTime at = {};
  std::size_t count = 1;    ///< events that are in it
  std::string reason = {};  ///< why it was held back; empty: it has fired
  std::string task_id = {};
  std::string cause = {};             ///< what set it off: `file.modify src/a.c`
  std::string by = {};                ///< the task or firing whose doing that was, as far as it is known
  boost::json::array links = {};      ///< of the chain in which it was stopped: `{ruleId, taskId}`, the first one first
  std::optional<Work> awaiting = {};  ///< approval, or room when it was approved
  bool approved = false;
  bool asked = false;     ///< its task was asked for under its key, and may be in the queue
  bool deciding = false;  ///< something is on its way to the disk; not kept itself
  bool kept = true;       ///< false: not shown before it is on disk
  bool unsaved = false;   ///< the store has not been given it yet

  bool held() const { return !reason.empty(); }
  bool awaits_approval() const { return awaiting && !approved && !deciding && kept; }
};

/// As people have it: `firing-7`.
std::string id_of(const Firing& firing);
/// Under which it is kept: `firing/7`.
std::string name_of(const Firing& firing);
inline constexpr std::string_view firing_names = "firing/";

std::string save_firing(const Firing& firing);
/// None if save_firing() did not make it. The one of a list of version 0.1 has its id in it.
std::optional<Firing> load_firing(std::string_view name, std::string_view text);
std::optional<Firing> load_listed_firing(const boost::json::value& saved);

/// The last firings of all rules, newest first. When there are too many, the oldest of the rule with most of them goes,
/// so that a busy rule hides no other. Those that wait for approval go only when there is nothing else, and not for one
/// that does not wait; then that is one too many until the next comes. What was approved stays.
class Firings {
 public:
  static constexpr std::size_t most_kept = 100;

  std::uint64_t next_number() { return ++last_; }
  std::uint64_t last_number() const { return last_; }
  /// For one that happens now. The clock does not tell which is the last: it may be set back.
  std::uint64_t next_turn() { return ++last_turn_; }

  /// Adds it, or puts it in the place of the one with its number.
  void put(Firing firing);
  /// As a daemon before this one left them, in any order.
  void load(std::vector<Firing> firings, std::uint64_t last_number);
  Firing* find(std::uint64_t number);
  Firing* find(std::string_view id);
  std::deque<Firing>& all() { return firings_; }
  /// One that has gone.
  struct Dropped {
    std::string name;
    bool waited = false;  ///< for approval
  };
  /// Those that have gone since this was asked.
  std::vector<Dropped> take_dropped() { return std::exchange(dropped_, {}); }
  /// They could not be forgotten: who asks next has to.
  void put_back(const std::vector<std::string>& dropped);

  /// Of the last one that happened, as far as the list goes back.
  std::optional<base::UtcTime> last_fired(std::string_view rule_id) const;
  /// The ids of those that wait for approval.
  boost::json::array awaiting() const;
  /// `[{id, ruleId, at, outcome, reason?, count, cause?, taskId?, would?, links?}]`, of all or of one rule.
  boost::json::array shown(std::string_view rule_id = {}) const;

 private:
  void drop_too_many();
  void drop(std::size_t count, bool waiting);

  std::uint64_t last_ = 0;
  std::uint64_t last_turn_ = 0;
  std::deque<Firing> firings_;
  std::vector<Dropped> dropped_;
};

}  // namespace duet::automation
