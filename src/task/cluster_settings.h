#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "task/agent.h"
#include "task/task.h"

namespace duet::task {

/// `store` and `[cluster]`: the queue that this daemon shares with others, and what it is in it. Whoever made it has
/// checked every bound. Without a store nothing else of it counts.
struct ClusterSettings {
  std::optional<std::string> store = {};  ///< a URL of PostgreSQL, perhaps with a password: it is never shown
  std::string project = {};               ///< never empty with a store
  std::string schema = "duet";
  std::string name = {};  ///< this worker's; never empty with a store
  std::vector<std::string> labels = {};
  std::optional<std::vector<std::string>> accept = {};  ///< see accepted_agents()
  bool run = true;                                      ///< false: it takes no tasks
  OnLost on_lost = OnLost::fail;                        ///< of tasks that do not say
  std::chrono::milliseconds lease = std::chrono::seconds(90);
  std::chrono::milliseconds lost_after = std::chrono::minutes(10);  ///< never below the lease
  std::uint64_t output = std::uint64_t{4} << 20U;                   ///< bytes of each attempt, in the database
  bool insecure = false;  ///< a connection without a verified certificate is used

  bool operator==(const ClusterSettings&) const = default;
};

/// The agents that tasks of other machines may use here, sorted: `accept`, or those of the settings without `shell`.
/// Those that this daemon does not have are left out.
std::vector<std::string> accepted_agents(const ClusterSettings& cluster, const TaskSettings& tasks);

/// Keeps of `next` what only a restart can change: where the queue is, and as what it was joined. Returns what to tell
/// people, on one line; empty: nothing of that differs.
std::string keep_until_restart(const ClusterSettings& running, ClusterSettings& next);

}  // namespace duet::task
