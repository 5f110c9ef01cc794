#include <algorithm>
#include <utility>

#include "simulate/cluster_names.h"
#include "simulate/cluster_simulation.h"

// What goes wrong with the machines of a cluster and its database.

namespace duet::simulate {

using std::chrono::milliseconds;
using std::chrono::seconds;

void ClusterSimulation::cause_fault() {
  ++faults_;
  Worker& worker = some_worker();
  if (habits_.only_failovers || (habits_.failovers && chance_.one_in(8))) return fail_over();
  if (habits_.only_outages) return go_down();
  switch (chance_.below(8)) {
    case 0:
    case 1:
      if (habits_.daemons_die) kill(worker);
      return;
    case 2:
      if (habits_.keepers_die) kill_keeper(worker);
      return;
    case 3:
      if (habits_.cuts) cut(worker);
      return;
    case 4:
      if (habits_.outages) go_down();
      return;
    case 5:
      if (habits_.freezes) freeze(worker);
      return;
    case 6:
      if (habits_.stops) stop(worker);
      return;
    default:
      if (!habits_.cuts) return;
      note("connections of " + worker.host.name + " break");
      truth_.set_reached(worker.host.number, false);
      server_.break_connections(worker.host.number);
  }
}

// What is committed after this moment and before the other server takes over is lost; or nothing is.
void ClusterSimulation::fail_over() {
  if (!server_.is_up() || machine_.clock().now() < next_failover_ || std::exchange(failing_over_, true)) return;
  next_failover_ = machine_.clock().now() + seconds(chance_.between(10, 300));
  const bool wants_loss = habits_.only_failovers && chance_.one_in(2);
  const base::TimePoint since = machine_.clock().now();
  const auto standby = std::make_shared<ModelDatabase::Data>(database_.data());
  agenda_.after(milliseconds(chance_.below(3000)), [this, wants_loss, since, standby] {
    // Who joined in the moments that are lost is not waited for: docs/cluster.md says so.
    const bool is_lossy = wants_loss && standby->workers.size() == database_.data().workers.size();
    note(std::string("another server takes over") + (is_lossy ? ", without the last moments" : ""));
    truth_.outage();
    server_.set_up(false);
    if (!is_lossy && chance_.one_in(2)) database_.crash();
    if (!is_lossy) *standby = database_.data();
    agenda_.after(milliseconds(chance_.below(20'000)), [this, is_lossy, since, standby] {
      const ModelDatabase::Data before = database_.data();
      database_.fail_over(std::move(*standby));
      truth_.failed_over(is_lossy ? since : machine_.clock().now(), before);
      failing_over_ = false;
      end_outage();
    });
  });
}

void ClusterSimulation::go_down() {
  if (!server_.is_up() || failing_over_) return;
  note("the database goes down");
  truth_.outage();
  server_.set_up(false);
  if (chance_.one_in(2)) database_.crash();
  agenda_.after(some_pause(), [this] { end_outage(); });
}

void ClusterSimulation::end_outage() {
  if (server_.is_up()) return;
  note("the database is up");
  server_.set_up(true);
}

// One, or with the daemon all that runs there.
void ClusterSimulation::kill_keeper(Worker& worker) {
  const auto keepers = worker.population->keepers();
  if (chance_.one_in(5)) {
    note("all processes of " + worker.host.name + " are killed");
    worker.population->kill_all();
    if (worker.daemon) worker.process->dead = true;
    return;
  }
  if (keepers.empty()) return;
  SimulatedKeeper& keeper = *keepers[chance_.below(keepers.size())];
  if (chance_.one_in(2)) return keeper.kill();
  keeper.process().dies_after = chance_.below(8);
  keeper.process().finishes_last_change = chance_.one_in(2);
}

void ClusterSimulation::cut(Worker& worker) {
  const std::size_t number = worker.host.number;
  if (server_.cut_of(number) != ModelServer::Cut::none) return;
  const bool silent = chance_.one_in(2);
  note(worker.host.name + " is cut off" + (silent ? " without a word" : ""));
  server_.set_cut(number, silent ? ModelServer::Cut::silent : ModelServer::Cut::refused);
  agenda_.after(some_pause(), [this, number] {
    note("worker-" + std::to_string(number) + " is not cut off any more");
    server_.set_cut(number, ModelServer::Cut::none);
  });
}

// SIGSTOP to the daemon: its keepers go on.
void ClusterSimulation::freeze(Worker& worker) {
  if (!worker.daemon || worker.frozen) return;
  const base::Duration time = some_pause();
  note(worker.host.name + " is frozen");
  worker.frozen = machine_.clock().now() + time;
  for (auto& [number, request] : unanswered_) {
    if (request.worker == worker.host.number) request.patience_ends += time + seconds(20);
  }
}

void ClusterSimulation::kill(Worker& worker) {
  if (!worker.daemon) return;
  if (chance_.one_in(2)) {
    worker.process->dead = true;
  } else {
    worker.process->dies_after = chance_.below(30);
    worker.process->finishes_last_change = chance_.one_in(2);
  }
}

void ClusterSimulation::stop(Worker& worker) {
  if (!worker.daemon || worker.stopping || worker.frozen) return;
  worker.stopping = true;
  truth_.set_reached(worker.host.number, false);
  const bool leaves = chance_.one_in(2);
  const bool force = chance_.one_in(2);
  const base::Duration patience = seconds(chance_.below(20));
  note(worker.host.name + " stops" + (leaves ? ", tasks go on" : force ? " by force" : ""));
  const std::uint64_t number = expect_answer(worker, "stop", patience + seconds(60));
  const auto stopped = [this, &worker, number, process = worker.process.get()] {
    if (process->dead) return;
    take_answer(number);
    worker.stopped = true;
  };
  as(worker, [&] {
    if (leaves) return worker.daemon->queue().leave(stopped);
    truth_.stopped_tasks(worker.host.number);
    worker.daemon->queue().stop(force, stopped, patience);
  });
}

}  // namespace duet::simulate
