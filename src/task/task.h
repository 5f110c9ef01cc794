#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/describe/enum.hpp>
#include <boost/json/object.hpp>

#include "duet/base/clock.h"
#include "process/launch.h"
#include "task/run.h"

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
enum class Reason : std::uint8_t { exit, signal, timeout, spawn, lost, dependency, memory };
BOOST_DESCRIBE_ENUM(Reason, exit, signal, timeout, spawn, lost, dependency, memory)

std::string_view name_of(Reason reason);

struct Failure {
  Reason reason = Reason::exit;
  std::string message = {};  ///< for people, without paths
};

/// Of a task that was to come after this one, which did not succeed.
Failure dependency_failure(TaskId id);

/// The group of a task that names none, nor does its agent. It is always there.
inline constexpr char default_group[] = "default";

/// What people tell their tasks apart by.
using Labels = std::map<std::string, std::string, std::less<>>;

/// What becomes of an attempt whose worker is not heard of any more, in a queue that machines share.
enum class OnLost : std::uint8_t { fail, retry };
BOOST_DESCRIBE_ENUM(OnLost, fail, retry)

/// The task whose processes have asked for another one.
struct Cause {
  TaskId task = 0;
  unsigned depth = 1;  ///< how many tasks led to it, one through the other
};

/// What a client asks for.
struct Submission {
  std::string prompt;
  std::optional<std::string> agent = {};      ///< none: the default one
  std::optional<std::int64_t> priority = {};  ///< higher runs first; none: as its agent's settings say, or 0
  std::string key = {};                       ///< empty: none
  std::string cwd = {};                       ///< empty: the project
  process::Environment env = {};              ///< added to the daemon's; its values are shown to nobody
  std::optional<std::chrono::milliseconds> time_limit = {};
  std::optional<std::uint32_t> retries = {};  ///< attempts after the first; none: as its agent's settings say, or 0
  std::vector<TaskId> after = {};             ///< tasks that must have succeeded before
  std::string group = {};                     ///< empty: that of its agent, or `default`
  std::optional<std::chrono::milliseconds> delay = {};  ///< it does not start before that much time has passed
  std::optional<base::UtcTime> not_before = {};         ///< nor before the clock on the wall says this
  Labels labels = {};
  process::Limits limits = {};        ///< of each attempt
  boost::json::object metadata = {};  ///< why it was asked for, and the like; shown in the record
  // Of a queue that machines share; a queue of one machine refuses the first two.
  std::optional<OnLost> on_lost = {};   ///< none: as the settings say
  std::vector<std::string> needs = {};  ///< labels that its worker must have
  bool here = false;                    ///< it runs where it was asked for, and nowhere else
  bool key_decides = false;             ///< the same key is the same task, whatever else differs; no part of the body
  // Who asked, for the record. No part of the body: another may ask for the same.
  std::string by = {};
  std::optional<Cause> cause = {};
};

/// All of it but who asked as JSON text, the same for the same submission.
std::string to_body(const Submission& submission);
/// Of text that to_body() made. Throws std::exception for any other.
Submission from_body(std::string_view body);

/// Output that was let go to make room: that of the first so many attempts, and how much it was.
struct GoneOutput {
  std::uint32_t attempts = 0;
  std::uint64_t bytes = 0;
};

/// What changes in a task's life.
struct Progress {
  State state = State::queued;
  bool cancelling = false;     ///< somebody has decided to end it
  std::uint32_t attempts = 0;  ///< that have begun
  std::uint32_t spared = 0;    ///< of those, how many do not count against its retries
  std::optional<base::UtcTime> retry_at = {};
  std::optional<base::UtcTime> started_at = {};  ///< of the last attempt
  std::optional<base::UtcTime> completed_at = {};
  std::optional<std::int64_t> pid = {};
  std::optional<std::int64_t> exit_code = {};
  std::string signal = {};  ///< its name; empty: none
  std::optional<Failure> error = {};
};

/// What a queue that machines share knows of a task beside the rest.
struct SharedFacts {
  std::string worker = {};  ///< the name of the one that has it, or had it last; empty: none yet
  OnLost on_lost = OnLost::fail;
  std::vector<std::string> needs = {};
  bool silent = false;            ///< its worker is not heard of
  std::string late = {};          ///< JSON of an end that came too late to count; empty: none
  std::string submitted_by = {};  ///< a role of the database
  std::string waiting_for = {};   ///< what no worker has that it needs; empty: nothing
};

/// A task as the world sees it.
struct Task {
  TaskId id = 0;
  std::string prompt = {};
  std::string agent = {};
  std::string group = default_group;
  std::int64_t priority = 0;
  bool held = false;  ///< somebody keeps it from starting
  base::UtcTime created_at = {};
  std::optional<base::UtcTime> not_before = {};
  Progress progress = {};
  Labels labels = {};
  std::optional<std::string> result = {};  ///< raw bytes
  bool output_gone = false;                ///< of some attempts, to make room
  std::optional<Usage> usage = {};         ///< of all attempts that have ended; of memory: the most that one had
  boost::json::object metadata = {};
  std::optional<SharedFacts> shared = {};  ///< none: the queue is of one machine
};

boost::json::object to_json(const Labels& labels);
/// Of what to_json() made. Throws std::exception for anything else.
Labels labels_of(const boost::json::object& saved);

/// What a task's record says beside its own members: of the submission, what is worth showing and no secret.
boost::json::object shown_metadata(const Submission& submission);
/// The same as JSON text.
std::string shown_metadata_text(const Submission& submission);

/// How many tasks and firings of rules led to the task of this metadata, one through the other.
unsigned chain_depth(const boost::json::object& metadata);

/// `{id, prompt, agent, priority, state, createdAt, …}`, null where nothing is known. Of a shared queue also `worker`,
/// `onLost`, `needs` and `submittedBy`, and `silent`, `late`, `waitingFor` where there is something to tell.
boost::json::object record_of(const Task& task);

}  // namespace duet::task
