#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulate/agenda.h"
#include "simulate/cluster_truth.h"
#include "simulate/machine.h"
#include "simulate/model_database.h"
#include "simulate/model_server.h"
#include "simulate/population.h"
#include "simulate/random.h"
#include "simulate/simulation.h"
#include "simulate/trace.h"
#include "simulate/worker_daemon.h"

namespace duet::simulate {

/// One run of some daemons that share a queue, decided by its seed: clients ask any of them, tasks run, daemons and
/// keepers are killed, machines are cut off from the database, which goes down and comes up. At the end all faults
/// cease, and everything must come to its end.
///
/// All machines share one disk, a folder each, and one clock; their CLOCK_BOOTTIMEs differ.
class ClusterSimulation {
 public:
  explicit ClusterSimulation(SimulationOptions options);
  ClusterSimulation(const ClusterSimulation&) = delete;
  ClusterSimulation& operator=(const ClusterSimulation&) = delete;
  ~ClusterSimulation();

  Verdict run();

 private:
  /// A machine with its daemon, if that lives.
  struct Worker {
    WorkerHost host = {};
    std::unique_ptr<Population> population = {};
    std::unique_ptr<Process> process = {};
    std::unique_ptr<WorkerDaemon> daemon = {};
    base::TimePoint start_at = {};               ///< if it has none
    std::optional<base::TimePoint> frozen = {};  ///< until then
    bool stopping = false;
    bool stopped = false;
  };
  struct Unanswered {
    std::string what;
    base::TimePoint patience_ends;
    std::size_t worker;
  };
  struct Habits {
    std::uint64_t requests = 20;
    std::uint64_t faults = 5;
    std::size_t open_tasks = 10;  ///< more are not submitted
    bool daemons_die = false;
    bool keepers_die = false;
    bool cuts = false;
    bool outages = false;
    bool only_outages = false;
    bool freezes = false;
    bool stops = false;
    bool failovers = false;       ///< without loss: a worker may be kept from telling again what it runs
    bool only_failovers = false;  ///< and some lose the last moments
  };

  void set_habits();
  void add_worker(std::size_t number);
  Witness witness_of(std::size_t host);
  void step();
  void proceed();
  void turn(Worker& worker);
  void look();
  void look_at(Worker& worker);
  void tell_soundness();

  void start(Worker& worker);
  WorkerDaemon::Ears ears_of(const Worker& worker);
  void drop(Worker& worker, base::Duration pause);
  void kill(Worker& worker);
  void stop(Worker& worker);
  base::Duration some_pause();

  void request();
  void submit(Worker& worker);
  void send(Worker& worker, const task::Submission& submission);
  void cancel(Worker& worker, task::TaskId id);
  void wait(Worker& worker);

  void cause_fault();
  void kill_keeper(Worker& worker);
  void cut(Worker& worker);
  void freeze(Worker& worker);
  void fail_over();
  void go_down();
  void end_outage();

  void finish();
  void live_on();
  void cancel_endless();
  bool has_come_to_rest();
  void check_processes();

  Worker& some_worker() { return workers_[chance_.below(workers_.size())]; }
  task::TaskId some_task();
  void as(Worker& worker, const std::function<void()>& work);
  std::uint64_t expect_answer(Worker& worker, const std::string& what, base::Duration patience);
  void take_answer(std::uint64_t request);
  void note(const std::string& what);

  SimulationOptions options_;
  Random chance_;
  Trace trace_;
  Machine machine_;
  Agenda agenda_;
  ModelDatabase database_;
  std::size_t count_;
  ModelServer server_;
  ClusterTruth truth_;
  Random chance_of_looks_;
  Habits habits_;
  std::vector<Worker> workers_;
  std::map<std::uint64_t, Unanswered> unanswered_;
  std::vector<task::Submission> keyed_;
  bool failing_over_ = false;
  base::TimePoint next_failover_ = {};
  std::uint64_t requests_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t lives_ = 0;
  std::uint64_t faults_ = 0;
};

}  // namespace duet::simulate
