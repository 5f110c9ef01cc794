#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/doctor/doctor.h"
#include "task/cluster_settings.h"
#include "task/postgres/worker_memory.h"

namespace duet::app {

/// What was found out about the database of a shared queue. What could not be found out is none, or empty.
struct ClusterFacts {
  /// A transaction of somebody, and how long it is open.
  struct Transaction {
    std::string pid;
    std::string application;
    std::chrono::seconds age{};
  };
  /// A table with its rows.
  struct Rows {
    std::string table;
    std::int64_t live = 0;
    std::int64_t dead = 0;
  };

  std::string server = {};                  ///< which one, for people
  std::string unreachable = {};             ///< why; then nothing else is known
  std::vector<std::string> passed_by = {};  ///< hosts that a daemon would not work with, and why
  bool is_here = false;                     ///< through a Unix socket or loopback
  std::string tls = {};                     ///< its version; empty: none
  std::string ssl_mode = {};
  std::string user = {};
  bool is_superuser = false;
  std::optional<bool> may_join = {};  ///< none: there is no queue to join
  std::optional<bool> may_run = {};   ///< its tasks
  bool wants_to_run = true;           ///< [cluster] run
  std::string schema = {};
  std::string schema_fault = {};  ///< why its version could not be asked for
  std::optional<std::int64_t> schema_version = {};
  std::int64_t own_version = 0;  ///< what this program needs
  std::int64_t oldest = 0;       ///< the least that the schema serves
  std::string project = {};      ///< the queue's
  std::string name_taken = {};   ///< [cluster] name, if another worker has it
  std::string own_project = {};
  bool is_adopted = true;  ///< the schema is on the server that it was made on
  int server_version = 0;  ///< 150004 is 15.4
  std::string encoding = {};
  std::string fsync = {};
  std::string full_page_writes = {};
  std::string synchronous_commit = {};
  std::vector<std::string> missing_timeouts = {};  ///< which the queue's own roles have, and this login role has not
  std::string synchronous_standby_names = {};
  std::optional<std::int64_t> standbys = {};
  bool is_pooled = false;
  std::optional<bool> wakes = {};  ///< a wake-up to oneself came back
  std::optional<std::int64_t> timeline = {};
  std::optional<std::int64_t> known_timeline = {};
  std::string outdated = {};  ///< why it is not, or not any more, the server that the daemon of this project works with
  std::optional<Transaction> oldest_transaction = {};
  std::int64_t hidden_sessions = 0;  ///< that this role may not look at
  std::vector<Rows> rows = {};
  std::string autovacuum = {};
  std::vector<std::string> tables_without_vacuum = {};
  std::vector<std::string> invalid_indexes = {};
  std::optional<std::chrono::milliseconds> clock_apart = {};
  std::optional<std::int64_t> connections_left = {};
  std::optional<double> notify_queue = {};  ///< 1 is full
  std::string logs_parameters = {};         ///< the setting by which the server's log has them; empty: it has not
};

/// Asks the server. It is given `most` to answer; nothing is changed there. `memory` is that of this project's daemon.
ClusterFacts cluster_facts(const task::ClusterSettings& cluster, const task::postgres::WorkerMemory& memory,
                           std::chrono::milliseconds most);

/// What is wrong with it, and what to do. Pure.
std::vector<Finding> check_cluster(const ClusterFacts& facts);

}  // namespace duet::app
