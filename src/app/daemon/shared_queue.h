#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/daemon/join_wait.h"
#include "app/project/failure.h"
#include "app/project/state_folder.h"
#include "duet/base/log.h"
#include "duet/transport/loop.h"
#include "task/cluster_settings.h"
#include "task/journal.h"
#include "task/lease_file.h"
#include "task/postgres/database.h"
#include "task/postgres/postgres_queue.h"
#include "task/store.h"

namespace duet::app {

/// The queue on PostgreSQL put together, for a daemon whose settings have a `store`: the connections, the journal of
/// the queue's events, the lease that keepers look at, and the queue.
class SharedQueue {
 public:
  struct Context {
    const StateFolder& folder;
    int tasks = -1;  ///< the folder with the outputs
    std::function<std::string()> project;
    process::Environment environment;
    task::Agents::ProvideFor provide_for;
    std::vector<std::string> limits;  ///< that can be kept, by name
  };

  /// Throws Failure: the address cannot be used, there is no libpq, or the local store has tasks that have not ended.
  SharedQueue(transport::Loop& loop, base::Log& log, const Context& context, task::Store& store,
              task::TaskSettings settings, task::ClusterSettings cluster, task::postgres::PostgresQueue::Tells tells);

  /// Connects and joins the queue, turning the loop meanwhile. Throws Failure if that is refused or takes too long;
  /// but who has been its worker goes on without it: there may be runs, and it joins when it can.
  void join(task::Runner& runner, const std::vector<task::RunId>& recorded);

  task::postgres::PostgresQueue& queue() { return *queue_; }
  task::Journal& journal() { return journal_; }

 private:
  void take(JoinWait::End end) const;

  transport::Loop& loop_;
  base::Log& log_;
  std::string address_;
  bool has_several_hosts_ = false;
  task::Lease lease_;
  task::Journal journal_;
  std::unique_ptr<task::postgres::Database> database_;
  std::optional<Failure> not_remembered_;  // why it could not be written down who this worker is
  std::unique_ptr<task::postgres::PostgresQueue> queue_;
};

/// This state folder is a copy of a worker's, and no daemon has joined the queue from here yet.
bool is_copied_worker(const StateFolder& folder);
inline constexpr const char* copied_worker_text =
    "this folder is a copy of one that has been a worker of the queue: it joins as another worker";

}  // namespace duet::app
