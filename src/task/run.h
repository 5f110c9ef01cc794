#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "duet/base/clock.h"
#include "process/cgroup.h"
#include "process/launch.h"

namespace duet::task {

/// One attempt at a task: `task` is the N of `task-N`, attempts count from 1. It happens once or never.
struct RunId {
  std::uint64_t task = 0;
  std::uint32_t attempt = 0;

  bool operator==(const RunId&) const = default;
  bool operator<(const RunId& other) const { return std::tie(task, attempt) < std::tie(other.task, other.attempt); }
};

/// What a run in a queue that many machines share belongs to. The task finds the first two as DUET_TASK_FENCE and
/// DUET_TASK_WORKER.
struct Claim {
  std::uint64_t fence = 0;
  std::string worker = {};  ///< its name; of more than 128 bytes the record keeps the beginning
  /// It must end before the lease of its worker is over (see lease_file.h), daemon or no daemon: the keeper sees to
  /// that, and its main process dies with the keeper.
  bool leased = false;

  bool operator==(const Claim&) const = default;
};

/// What a keeper is to do.
struct Assignment {
  RunId run;
  std::vector<std::string> arguments;  ///< as in process::Launch: the first one is looked up in the environment's PATH
  process::Environment environment = {};  ///< all of it; DUET_TASK_ID and DUET_TASK_MARK are added
  std::string directory = {};
  std::optional<std::string> input = {};  ///< what it reads on stdin, of any size; else /dev/null
  std::optional<std::chrono::milliseconds> time_limit = {};
  process::Limits limits = {};      ///< only where KeeperSettings have a place for cgroups
  std::optional<Claim> claim = {};  ///< none in a queue of this machine alone
};

/// The main process of a run.
struct Started {
  pid_t pid = 0;
  base::UtcTime at = {};
};

/// What a run used, until its main process ended: what is left of its tree then does not count any more.
struct Usage {
  std::chrono::microseconds cpu{0};
  std::uint64_t max_memory = 0;    ///< bytes; see process::TreeUsage for what it means
  std::uint64_t output_bytes = 0;  ///< that it wrote, kept or not

  bool operator==(const Usage&) const = default;
};

/// The problem of a run that was told to end, or could not begin, since the lease of its worker was over.
inline constexpr std::string_view lease_was_over = "its worker's lease was over";

/// How a run ended, that is: its main process.
struct Outcome {
  enum class Kind : std::uint8_t {
    exited,       ///< with `code`
    signalled,    ///< by `signal`
    not_started,  ///< because of `problem`
    lost,         ///< its keeper was killed; nobody knows
  };

  Kind kind = Kind::lost;
  int code = 0;
  int signal = 0;
  bool timed_out = false;               ///< the time limit had passed, and it had been told to end
  bool out_of_memory = false;           ///< the kernel killed it, since it needed more than its limit
  std::optional<Started> started = {};  ///< not if it never did, or if its keeper was killed at that moment
  base::UtcTime ended_at = {};          ///< of a lost run: when that was found
  std::optional<Usage> usage = {};      ///< not if its keeper was killed, or is of version 0.1
  std::string problem = {};             ///< for people, without paths; also of one that ended by `lease_was_over`
  std::string result = {};              ///< the last 64 KiB of stdout, raw

  /// It was told to end for that reason; `kind` is what its main process made of it.
  bool ended_with_lease() const { return kind < Kind::not_started && problem == lease_was_over; }
};

/// What a daemon before has left of a run, by its record.
struct LeftRun {
  Claim claim;
  bool gone = false;
  std::optional<Outcome> outcome = {};  ///< without its result
};

}  // namespace duet::task
