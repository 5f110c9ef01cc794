#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>
#include <tl/expected.hpp>

#include "app/daemon/shared_queue.h"
#include "app/methods/daemon_methods.h"
#include "app/project/project.h"
#include "app/project/state_folder.h"
#include "duet/base/fd.h"
#include "duet/base/log.h"
#include "duet/transport/loop.h"
#include "process/cgroup.h"
#include "task/journal.h"
#include "task/keeper.h"
#include "task/store.h"
#include "task/supervisor.h"
#include "task/system_keeper_world.h"

namespace duet::app {

/// All that concerns tasks, put together: the store, its journal, the supervisor or a shared queue, and the keepers
/// that run for it.
class TaskRoom {
 public:
  struct Events {
    task::OutputFollower::Audience output;
    task::Store::Tell store;                                     ///< how the store is, whenever that changes
    std::function<void(const std::string& problem)> queue = {};  ///< of a shared one; empty: nothing is wrong any more
    std::function<void()> journal_began_anew = {};
    std::function<void(const task::Task&)> starts = {};  ///< of a shared queue: a rule's task, on this machine
  };

  struct Context {
    const Project& project;
    const StateFolder& folder;
    const DaemonLock& lock;
    int executable = -1;  ///< this program, opened
    mode_t umask_of_tasks = 022;
    task::ClusterSettings cluster = {};  ///< with a store the queue is one that machines share
  };

  /// Throws Failure if the store cannot be used.
  TaskRoom(transport::Loop& loop, base::Log& log, const Context& context, task::TaskSettings settings, Events events);
  TaskRoom(const TaskRoom&) = delete;
  TaskRoom& operator=(const TaskRoom&) = delete;
  ~TaskRoom() = default;

  /// Joins a shared queue, before anybody is answered, turning the loop meanwhile. Throws Failure.
  void join();
  /// At once, or when a shared queue is joined: one that has been its worker may start without it.
  void when_joined(std::function<void()> call);
  /// Takes up what an earlier daemon left, and starts working.
  void begin();
  void end(const StopRequest& request, std::function<void()> done);

  task::Store& store() const { return *store_; }
  task::Journal& journal() const { return shared_ ? shared_->journal() : *journal_; }
  task::Queue& queue() const;
  /// Null: the queue is of this machine alone.
  task::postgres::PostgresQueue* shared() const { return shared_ ? &shared_->queue() : nullptr; }
  /// The store can be written again.
  void store_recovered() const;

 private:
  transport::Loop& loop_;
  base::Log& log_;
  base::Fd tasks_;
  tl::expected<process::CgroupHome, std::string> cgroups_;  // before anything is started
  std::unique_ptr<task::Store> store_;
  std::unique_ptr<task::Journal> journal_;
  std::unique_ptr<task::Supervisor> supervisor_;  // or
  std::unique_ptr<SharedQueue> shared_;
  std::unique_ptr<task::SystemKeeperWorld> keeper_world_;
  std::unique_ptr<task::Keepers> keepers_;
};

}  // namespace duet::app
