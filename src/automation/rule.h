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
  enum class Type : std::uint8_t { agent, notify };
  Type type = Type::agent;
  std::string agent = {};    ///< empty: the default one
  std::string prompt = {};   ///< with `{{payload.path}}`
  std::string message = {};  ///< of a notice, likewise
  std::optional<std::int64_t> priority = {};
};

/// What becomes of times of a schedule that passed while nobody was there.
enum class Missed : std::uint8_t { skip, once };

/// One rule of the settings.
struct Rule {
  std::string id;
  Trigger trigger;
  std::vector<Condition> conditions = {};
  Action action;
  std::chrono::milliseconds cooldown{0};
  Missed missed = Missed::skip;
  bool requires_approval = false;
  bool enabled = true;
};

/// `[watch]` of the settings.
struct WatchSettings {
  std::vector<std::string> paths = {};  ///< within the project; none: all of it
  std::vector<std::string> ignore = {};
};

}  // namespace duet::automation
