#include "app/daemon/task_room.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "app/project/failure.h"
#include "duet/base/disk_full.h"
#include "process/launch.h"
#include "task/run_record.h"

namespace duet::app {
namespace {

// Those of a shared queue stand apart: its tasks have other numbers, and a copy of the folder has other tasks.
std::string name_of_tasks(const StateFolder& folder, bool is_shared) {
  struct stat status {};
  if (!is_shared || fstat(folder.descriptor(), &status) != 0) return "tasks";
  return "tasks-" + std::to_string(status.st_ino);
}

base::Fd open_tasks(const StateFolder& folder, bool is_shared) {
  const std::string text = name_of_tasks(folder, is_shared);
  const char* const name = text.c_str();
  const bool is_there = mkdirat(folder.descriptor(), name, 0700) == 0 || errno == EEXIST;
  base::Fd tasks;
  if (is_there) tasks.reset(openat(folder.descriptor(), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (tasks) return tasks;
  const int error = errno;
  throw Failure("cannot open " + folder.shown() + "/" + text + ": " + std::strerror(error) +
                    (base::is_disk_full(error) ? ": make room on its disk" : ""),
                code_of_refused_start(error));
}

std::unique_ptr<task::Store> open_store(transport::Loop& loop, const TaskRoom::Context& context,
                                        task::Store::Tell tell) {
  auto folder_holds = [&lock = context.lock, &project = context.project] { return lock.is_in_place(project); };
  try {
    auto place = std::make_unique<task::StoreFolder>(
        context.folder.descriptor(),
        task::StoreFolder::Options{.folder_holds = std::move(folder_holds), .lays_out_log = true});
    return std::make_unique<task::Store>(loop, std::move(place), std::move(tell));
  } catch (const task::StoreError& error) {
    const std::string text = context.folder.shown() + "/tasks.db: " + error.what() + ". Nothing was changed; ";
    if (error.is_for_want_of_room()) throw Failure(text + "make room on its disk", exit_code::try_again);
    throw Failure(text + "to begin anew, move " + context.folder.shown() + " away");
  }
}

}  // namespace

TaskRoom::TaskRoom(transport::Loop& loop, base::Log& log, const Context& context, task::TaskSettings settings,
                   Events events)
    : loop_(loop),
      log_(log),
      tasks_(open_tasks(context.folder, context.cluster.store.has_value())),
      cgroups_(process::CgroupHome::find()),
      store_(open_store(loop, context, std::move(events.store))) {
  const auto project = [&project = context.project] { return present_path(project); };
  const task::Agents::ProvideFor provide_for = [this](const process::Limits& limits) {
    return cgroups_.and_then([&](auto& home) { return home.provide_for(limits); });
  };
  if (context.cluster.store) {
    shared_ = std::make_unique<SharedQueue>(
        loop_, log_,
        SharedQueue::Context{context.folder, tasks_.get(), project, process::current_environment(), provide_for,
                             cgroups_ ? cgroups_->offered() : std::vector<std::string>()},
        *store_, std::move(settings), context.cluster,
        task::postgres::PostgresQueue::Tells{std::move(events.output), std::move(events.queue),
                                             std::move(events.journal_began_anew), std::move(events.starts)});
  } else {
    journal_ = std::make_unique<task::Journal>(*store_);
    const task::Context for_supervisor{.tasks = tasks_.get(),
                                       .project = project,
                                       .environment = process::current_environment(),
                                       .seed = std::random_device()(),
                                       .provide_for = provide_for};
    supervisor_ = std::make_unique<task::Supervisor>(loop_, log_, *store_, std::move(settings), for_supervisor,
                                                     std::move(events.output));
  }
  keeper_world_ = std::make_unique<task::SystemKeeperWorld>(loop_, tasks_.get(), context.executable);
  keepers_ = std::make_unique<task::Keepers>(
      loop_, log_, *keeper_world_,
      task::KeeperSettings{.umask = context.umask_of_tasks, .cgroups = cgroups_ ? cgroups_->folder() : ""},
      shared_ ? shared_->queue().keeper_events() : supervisor_->keeper_events());
}

task::Queue& TaskRoom::queue() const {
  if (shared_) return shared_->queue();
  return *supervisor_;
}

void TaskRoom::store_recovered() const {
  if (supervisor_) supervisor_->store_recovered();
}

void TaskRoom::join() {
  if (shared_) shared_->join(*keepers_, task::recorded_runs(tasks_.get()));
}

void TaskRoom::begin() {
  if (supervisor_) supervisor_->begin(*keepers_, task::recorded_runs(tasks_.get()));
  when_joined([this] { keepers_->end_strays(); });  // only the queue knows which they are
}

void TaskRoom::when_joined(std::function<void()> call) {
  shared_ ? shared_->queue().when_joined(std::move(call)) : call();
}

void TaskRoom::end(const StopRequest& request, std::function<void()> done) {
  if (request.leave_tasks) return queue().leave(std::move(done));
  std::optional<base::Duration> patience = request.patience;
  if (!patience && !request.drain) patience = task::Supervisor::stop_patience;
  queue().stop(request.force, std::move(done), patience);
}

}  // namespace duet::app
