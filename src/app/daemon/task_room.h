#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>
#include <tl/expected.hpp>

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

/// All that concerns tasks, put together: the store, its journal, the supervisor, and the keepers that run for it.
class TaskRoom {
 public:
  struct Events {
    task::OutputFollower::Audience output;
    task::Store::Tell store;  ///< how the store is, whenever that changes
  };

  struct Context {
    const Project& project;
    const StateFolder& folder;
    const DaemonLock& lock;
    int executable = -1;  ///< this program, opened
    mode_t umask_of_tasks = 022;
  };

  /// Throws Failure if the store cannot be used.
  TaskRoom(transport::Loop& loop, base::Log& log, const Context& context, task::TaskSettings settings, Events events);
  TaskRoom(const TaskRoom&) = delete;
  TaskRoom& operator=(const TaskRoom&) = delete;
  ~TaskRoom() = default;

  /// Takes up what an earlier daemon left, and starts working.
  void begin();
  void end(const StopRequest& request, std::function<void()> done);

  task::Store& store() const { return *store_; }
  task::Journal& journal() const { return *journal_; }
  task::Queue& queue() const { return *supervisor_; }
  /// The store can be written again.
  void store_recovered() { supervisor_->store_recovered(); }

 private:
  transport::Loop& loop_;
  base::Log& log_;
  base::Fd tasks_;
  tl::expected<process::CgroupHome, std::string> cgroups_;  // before anything is started
  std::unique_ptr<task::Store> store_;
  std::unique_ptr<task::Journal> journal_;
  std::unique_ptr<task::Supervisor> supervisor_;
  std::unique_ptr<task::SystemKeeperWorld> keeper_world_;
  std::unique_ptr<task::Keepers> keepers_;
};

}  // namespace duet::app
