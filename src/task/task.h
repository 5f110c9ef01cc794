#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/describe/enum.hpp>
#include <boost/json/object.hpp>

#include "duet/base/clock.h"
#include "process/launch.h"

namespace duet::task {

/// The N of `task-N`. Counts from 1 and is never used again.
using TaskId = std::uint64_t;

std::string to_text(TaskId id);
/// None if it is not spelt as to_text() does it.
std::optional<TaskId> parse_task_id(std::string_view text);

enum class State : std::uint8_t { queued, running, completed, failed, cancelled };
BOOST_DESCRIBE_ENUM(State, queued, running, completed, failed, cancelled)

std::string_view name_of(State state);
inline bool has_ended(State state) { return state >= State::completed; }

/// Why a task failed.
enum class Reason : std::uint8_t { exit, signal, timeout, spawn, lost, dependency };
BOOST_DESCRIBE_ENUM(Reason, exit, signal, timeout, spawn, lost, dependency)

std::string_view name_of(Reason reason);

struct Failure {
  Reason reason = Reason::exit;
  std::string message = {};  ///< for people, without paths
};

/// Of a task that was to come after this one, which did not succeed.
Failure dependency_failure(TaskId id);

/// What a client asks for.
struct Submission {
  std::string prompt;
  std::optional<std::string> agent = {};  ///< none: the default one
  std::int64_t priority = 0;              ///< higher runs first
  std::string key = {};                   ///< empty: none
  std::string cwd = {};                   ///< empty: the project
  process::Environment env = {};          ///< added to the daemon's; its values are shown to nobody
  std::optional<std::chrono::milliseconds> time_limit = {};
  std::uint32_t retries = 0;          ///< attempts after the first
  std::vector<TaskId> after = {};     ///< tasks that must have succeeded before
  boost::json::object metadata = {};  ///< who asked, and the like; shown in the record
};

/// All of it as JSON text, the same for the same submission.
std::string to_body(const Submission& submission);
/// Of text that to_body() made. Throws std::exception for any other.
Submission from_body(std::string_view body);

/// What changes in a task's life.
struct Progress {
  State state = State::queued;
  bool cancelling = false;     ///< somebody has decided to end it
  std::uint32_t attempts = 0;  ///< that have begun
  std::optional<base::UtcTime> retry_at = {};
  std::optional<base::UtcTime> started_at = {};  ///< of the last attempt
  std::optional<base::UtcTime> completed_at = {};
  std::optional<std::int64_t> pid = {};
  std::optional<std::int64_t> exit_code = {};
  std::string signal = {};  ///< its name; empty: none
  std::optional<Failure> error = {};
};

/// A task as the world sees it.
struct Task {
  TaskId id = 0;
  std::string prompt = {};
  std::string agent = {};
  std::int64_t priority = 0;
  base::UtcTime created_at = {};
  Progress progress = {};
  std::optional<std::string> result = {};  ///< raw bytes
  boost::json::object metadata = {};
};

/// What a task's record says beside its own members: of the submission, what is worth showing and no secret.
boost::json::object shown_metadata(const Submission& submission);

/// `{id, prompt, agent, priority, state, createdAt, …}`, null where nothing is known.
boost::json::object record_of(const Task& task);

}  // namespace duet::task
