#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "duet/base/fd.h"
#include "duet/base/log.h"
#include "duet/base/log_sink.h"
#include "duet/transport/loop.h"
#include "simulate/model_line.h"
#include "simulate/population.h"
#include "simulate/simulated_world.h"
#include "task/cluster_settings.h"
#include "task/journal.h"
#include "task/keeper.h"
#include "task/lease_file.h"
#include "task/postgres/postgres_queue.h"
#include "task/store.h"

namespace duet::simulate {

/// What of a worker's machine outlives its daemons.
struct WorkerHost {
  std::size_t number = 0;
  std::string name = {};
  task::TaskSettings settings = {};
  task::ClusterSettings cluster = {};
  bool listens = true;             ///< wake-ups reach it
  base::Duration boot_ahead = {};  ///< its CLOCK_BOOTTIME, before the simulation's
  std::optional<task::LeaseTerm> lease = {};
};

/// One life of a daemon whose queue is in the simulated database, put together as the program does it. Its calls are
/// to be made as its process (Machine::As).
class WorkerDaemon {
 public:
  struct Ears {
    std::function<void(const task::Event&)> event;
    std::function<void()> began_anew;  ///< events may be missing from now on
  };

  /// Throws task::StoreError, rpc::Error or std::system_error if it cannot start.
  WorkerDaemon(Population& population, ModelServer& server, Process& process, WorkerHost& host, const Ears& ears);
  WorkerDaemon(const WorkerDaemon&) = delete;
  WorkerDaemon& operator=(const WorkerDaemon&) = delete;
  ~WorkerDaemon();

  transport::Loop& loop() { return loop_; }
  task::postgres::PostgresQueue& queue() { return *queue_; }
  /// It has joined the queue, for the first time.
  bool has_begun() const { return begun_; }
  /// The number of the event that it waits for.
  std::uint64_t next_event() const { return journal_.next(); }
  /// After each turn. False: it could not join in time, and ends.
  bool look();

 private:
  task::postgres::PostgresQueue::Options queue_options();
  std::string read_memory() const;
  bool write_memory(const std::string& text) const;

  Population& population_;
  Process& process_;
  WorkerHost& host_;
  transport::Loop loop_;
  base::Log log_{nullptr};
  base::Fd home_;
  base::Fd tasks_;
  std::unique_ptr<task::Store> store_;
  task::Journal journal_;
  std::unique_ptr<ModelLine> line_;
  std::unique_ptr<task::postgres::PostgresQueue> queue_;
  std::unique_ptr<SimulatedWorld> world_;
  std::unique_ptr<task::Keepers> keepers_;
  base::TimePoint join_until_;
  bool begun_ = false;
};

}  // namespace duet::simulate
