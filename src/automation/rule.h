#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/value.hpp>

namespace duet::automation {

/// What sets a rule off. Everything that is given must hold.
struct Trigger {
  std::string source = {};   ///< watch, schedule, task, daemon; empty: any
  std::string type = {};     ///< `file.modify` and the like; empty: any
  std::string pattern = {};  ///< a glob on payload.path; empty: any
  std::string cron = {};     ///< of source `schedule`: five fields
};

enum class Operator : std::uint8_t { eq, neq, contains, matches, gt, lt, gte, lte, exists, not_exists };

struct Condition {
  std::string field;  ///< `payload.path`
  Operator op = Operator::eq;
  boost::json::value value = nullptr;
};

struct Action {
  enum class Type : std::uint8_t { agent, notify, run };
  Type type = Type::agent;
  std::string agent = {};    ///< empty: the default one
  std::string prompt = {};   ///< with `{{payload.path}}`
  std::string message = {};  ///< of a notice, likewise
  std::optional<std::int64_t> priority = {};
  std::vector<std::string> command = {};      ///< of a program, with the event on its stdin
  std::chrono::milliseconds timeout{30'000};  ///< for it
};

/// What becomes of times of a schedule that passed while nobody was there.
enum class Missed : std::uint8_t { skip, once };

/// What becomes of a firing while a task of the rule has not ended.
enum class WhenBusy : std::uint8_t {
  each,    ///< it has a task of its own, beside the others: for events that each tell of something else
  queue,   ///< it waits, with all that come meanwhile, and happens once
  skip,    ///< it is held back
  restart  ///< as queue, and the task is cancelled
};

/// One rule of the settings.
struct Rule {
  std::string id;
  Trigger trigger;
  std::vector<Condition> conditions = {};
  Action action;
  std::chrono::milliseconds cooldown{0};
  Missed missed = Missed::skip;
  WhenBusy when_busy = WhenBusy::each;
  bool trailing = true;       ///< what a cooldown or the bound of a minute holds back happens at its end, once
  std::string timezone = {};  ///< of the schedule; empty: local time
  bool requires_approval = false;
  bool enabled = true;
};

/// How many tasks of rules may lead to each other, unless the settings say so.
inline constexpr unsigned default_max_chain = 8;

/// `[watch]` of the settings.
struct WatchSettings {
  std::vector<std::string> paths = {};  ///< within the project; none: all of it
  std::vector<std::string> ignore = {};
  bool gitignore = true;  ///< what git ignores is left out, too
  unsigned max_chain = default_max_chain;
};

}  // namespace duet::automation
