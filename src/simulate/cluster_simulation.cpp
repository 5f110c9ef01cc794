#include "simulate/cluster_simulation.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "duet/rpc/value.h"
#include "simulate/cluster_names.h"
#include "simulate/model.h"
#include "task/postgres/records.h"

namespace duet::simulate {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

constexpr std::chrono::hours time_to_rest{1};

std::int64_t since_start(base::TimePoint now) {
  return std::chrono::duration_cast<milliseconds>(now.time_since_epoch() - std::chrono::hours(1)).count();
}

}  // namespace

ClusterSimulation::ClusterSimulation(SimulationOptions options)
    : options_(options),
      chance_(options.seed),
      trace_(options.loud),
      machine_(chance_.next()),
      agenda_(machine_.clock()),
      database_(machine_.clock(), chance_.fork()),
      count_(chance_.between(2, 3)),
      server_(agenda_, database_, trace_, count_, chance_.fork()),
      truth_(database_, machine_.clock(), count_),
      chance_of_looks_(options.seed) {
  set_habits();
  server_.carried_out = [this](std::size_t host, std::string_view function, const std::vector<Argument>& arguments) {
    if (options_.disk) note(worker_name(host) + " has called " + std::string(function));
    truth_.carried_out(function, arguments);
  };
  workers_.resize(count_);
  for (std::size_t i = 0; i < count_; ++i) add_worker(i);
}

void ClusterSimulation::set_habits() {
  habits_.requests = chance_.between(5, 40);
  habits_.faults = chance_.one_in(6) ? 0 : chance_.between(1, 8);
  habits_.open_tasks = chance_.between(3, 20);
  for (bool* habit : {&habits_.daemons_die, &habits_.keepers_die, &habits_.cuts, &habits_.outages, &habits_.freezes,
                      &habits_.stops}) {
    *habit = chance_.one_in(2);
  }
  const Habits alone{.requests = habits_.requests, .faults = 2, .open_tasks = habits_.open_tasks};
  const std::uint64_t kind = chance_.below(6);  // some faults are looked at without the noise of others
  if (kind < 3) habits_ = alone;
  habits_.failovers = kind == 0 || (kind > 2 && chance_.one_in(3));
  habits_.only_failovers = kind == 0;
  habits_.only_outages = kind == 1;
  habits_.cuts = habits_.cuts || kind == 2;
  if (habits_.faults > 0 && kind != 1 && chance_.one_in(2)) {
    const std::uint64_t most = chance_.one_in(2) ? 30 : 300;
    server_.habits = {.requests_lost = chance_.below(most),
                      .answers_lost = chance_.below(most),
                      .stalls = chance_.below(most),
                      .refusals = chance_.one_in(2) ? chance_.below(most) : 0};
    truth_.calls_get_lost = true;
  }
  server_.is_pooled = chance_.one_in(4);
  server_.database().has_old_snapshot = chance_.one_in(4);
}

void ClusterSimulation::add_worker(std::size_t number) {
  Worker& worker = workers_[number];
  WorkerHost& host = worker.host;
  host.number = number;
  host.name = worker_name(number);
  task::Agent agent{.command = {"play"}, .prompt_on_stdin = true};
  host.settings.agents[usual_agent] = agent;
  host.settings.default_agent = usual_agent;
  host.settings.max_running = chance_.between(1, 4);
  host.cluster.store = "postgresql://model";
  host.cluster.project = "site";
  host.cluster.name = host.name;
  host.cluster.lease = seconds(chance_.one_in(2) ? 30 : chance_.between(30, 90));
  host.cluster.lost_after = host.cluster.lease + seconds(chance_.below(300));
  if (number == 0) host.cluster.labels = {"gpu"};
  host.listens = !chance_.one_in(4) && !server_.is_pooled;  // a pooler hands on no wake-ups
  host.boot_ahead = seconds(chance_.below(1'000'000));
  truth_.set_host(number, host.settings.max_running, host.cluster.labels);
  worker.population = std::make_unique<Population>(machine_, agenda_, trace_, witness_of(number), host.name);
  worker.population->lease_left = [this, number] {
    const WorkerHost& owner = workers_[number].host;
    if (!owner.lease) return task::LeaseLeft{};
    const task::BootTime now{machine_.clock().now().time_since_epoch() + owner.boot_ahead};
    return task::LeaseLeft{.until_end = owner.lease->end() - now, .until_over = owner.lease->deadline - now};
  };
  worker.start_at = machine_.clock().now();
}

Witness ClusterSimulation::witness_of(std::size_t host) {
  return {.began = [this, host](const Tree& tree) { truth_.began(host, tree); },
          .main_ended = [this](const Tree& tree, int status, bool kept) { truth_.main_ended(tree, status, kept); },
          .gone = [this](const Tree& tree) { truth_.gone(tree); },
          .ordered = [](task::RunId) {},
          .wrote = [this, host](task::RunId run, std::string_view bytes,
                                task::Stream stream) { truth_.wrote(host, run, bytes, stream); },
          .keeper_died = [this, host](task::RunId run, bool) { truth_.keeper_died(host, run); },
          .output_unsynced = [](task::RunId) {}};
}

ClusterSimulation::~ClusterSimulation() {
  for (Worker& worker : workers_) {
    if (!worker.daemon) continue;
    worker.process->dead = true;
    as(worker, [&] { worker.daemon.reset(); });
  }
}

void ClusterSimulation::note(const std::string& what) {
  trace_.note(std::to_string(since_start(machine_.clock().now())) + " ms: " + what);
}

void ClusterSimulation::as(Worker& worker, const std::function<void()>& work) {
  const Machine::As as(machine_, *worker.process);
  try {
    work();
  } catch (const std::exception& error) {
    if (!worker.process->dead) truth_.fail("an exception left " + worker.host.name + ": " + error.what());
  }
}

Verdict ClusterSimulation::run() {
  const base::TimePoint begun = machine_.clock().now();
  try {
    for (steps_ = 0; steps_ < options_.steps && !truth_.violation(); ++steps_) step();
    if (!truth_.violation()) finish();
  } catch (const std::exception& error) {
    truth_.fail(std::string("an exception left the simulation: ") + error.what());
  }
  return {.violation = truth_.violation(),
          .step = steps_,
          .digest = trace_.digest(),
          .simulated = machine_.clock().now() - begun,
          .tasks = truth_.count(),
          .lives = lives_,
          .cuts = faults_,
          .last = trace_.last()};
}

// ---- time ----

void ClusterSimulation::step() {
  const std::uint64_t choice = chance_.below(1000);
  if (choice < habits_.faults) {
    cause_fault();
  } else if (choice < habits_.faults + habits_.requests) {
    request();
  } else {
    proceed();
  }
  look();
}

// What is due happens, in any order; if nothing is, time passes.
void ClusterSimulation::proceed() {
  const base::TimePoint now = machine_.clock().now();
  base::TimePoint next = now + minutes(1);
  std::vector<Worker*> due;
  for (Worker& worker : workers_) {
    std::optional<base::TimePoint> wanted = worker.start_at;
    if (worker.daemon) wanted = worker.daemon->loop().next();
    if (worker.frozen) wanted = std::max(wanted.value_or(*worker.frozen), *worker.frozen);
    if (!wanted) continue;
    next = std::min(next, *wanted);
    if (*wanted <= now) due.push_back(&worker);
  }
  const std::size_t things = due.size() + (agenda_.has_due() ? 1 : 0);
  if (things > 0) {
    const std::size_t choice = chance_.below(things);
    return choice < due.size() ? turn(*due[choice]) : agenda_.do_next();
  }
  if (const auto deed = agenda_.next()) next = std::min(next, *deed);
  machine_.clock().advance(next - now);
}

void ClusterSimulation::turn(Worker& worker) {
  if (worker.frozen) {
    note(worker.host.name + " thaws");
    worker.frozen.reset();
  }
  if (!worker.daemon) return start(worker);
  as(worker, [&] {
    worker.daemon->loop().turn(machine_.clock().now());
    if (worker.daemon->look()) return;
    worker.stopped = true;
    const task::postgres::PostgresQueue& queue = worker.daemon->queue();
    if (queue.is_refused() && !worker.process->dead) truth_.fail(worker.host.name + " is refused: " + queue.trouble());
  });
}

void ClusterSimulation::look() {
  for (Worker& worker : workers_) look_at(worker);
  tell_soundness();
  for (const auto& [number, request] : unanswered_) {
    if (machine_.clock().now() > request.patience_ends) {
      return truth_.fail("no answer to " + request.what + " by " + workers_[request.worker].host.name);
    }
  }
}

void ClusterSimulation::look_at(Worker& worker) {
  if (!worker.daemon) return;
  if (worker.process->dead) {
    note(worker.host.name + " is killed");
    return drop(worker, some_pause());
  }
  if (!worker.stopped) return;
  note(worker.host.name + " has stopped");
  drop(worker, some_pause());
}

void ClusterSimulation::tell_soundness() {
  for (const Worker& worker : workers_) {
    const bool is_sound = worker.daemon && !worker.frozen && !worker.stopping && worker.daemon->has_begun() &&
                          server_.cut_of(worker.host.number) == ModelServer::Cut::none;
    truth_.set_sound(worker.host.number, is_sound);
    truth_.set_reached(worker.host.number, is_sound && server_.is_up());
  }
  if (chance_of_looks_.one_in(50)) truth_.check_fenced();
}

// ---- lives ----

void ClusterSimulation::start(Worker& worker) {
  note(worker.host.name + " starts");
  ++lives_;
  worker.process = std::make_unique<Process>(Process{worker.host.name});
  worker.stopping = worker.stopped = false;
  if (habits_.faults > 0 && habits_.daemons_die && chance_.one_in(10)) {
    worker.process->dies_after = chance_.below(60);
    worker.process->finishes_last_change = chance_.one_in(2);
  }
  truth_.began_to_read(worker.host.number);
  const Machine::As as(machine_, *worker.process);
  try {
    worker.daemon =
        std::make_unique<WorkerDaemon>(*worker.population, server_, *worker.process, worker.host, ears_of(worker));
  } catch (const std::exception& error) {
    if (!worker.process->dead) truth_.fail(worker.host.name + " cannot start: " + error.what());
    machine_.end(*worker.process);
    worker.start_at = machine_.clock().now() + some_pause();
  }
}

WorkerDaemon::Ears ClusterSimulation::ears_of(const Worker& worker) {
  const std::size_t number = worker.host.number;
  return {.event =
              [this, number, process = worker.process.get()](const task::Event& event) {
                if (!process->dead) truth_.heard(number, event);
              },
          .began_anew = [this, number] { truth_.journal_began_anew(number); }};
}

// Nothing that it still does on its way down has any effect.
void ClusterSimulation::drop(Worker& worker, base::Duration pause) {
  worker.process->dead = true;
  as(worker, [&] { worker.daemon.reset(); });
  machine_.end(*worker.process);
  worker.frozen.reset();
  worker.stopping = worker.stopped = false;
  worker.start_at = machine_.clock().now() + pause;
  std::erase_if(unanswered_, [&](const auto& each) { return each.second.worker == worker.host.number; });
}

base::Duration ClusterSimulation::some_pause() {
  if (habits_.faults == 0) return seconds(1);
  switch (chance_.below(4)) {
    case 0:
      return seconds(chance_.below(100));
    case 1:
      return seconds(chance_.below(900));
    default:
      return milliseconds(chance_.below(5000));
  }
}

// ---- the end ----

bool ClusterSimulation::has_come_to_rest() {
  const bool has_processes =
      std::ranges::any_of(workers_, [](const Worker& worker) { return !worker.population->living_trees().empty(); });
  return truth_.has_come_to_rest() && !has_processes && unanswered_.empty();
}

void ClusterSimulation::finish() {
  note("faults cease");
  habits_ = {.requests = 0, .faults = 0};
  server_.habits = {};
  if (!failing_over_) end_outage();
  for (Worker& worker : workers_) {
    server_.set_cut(worker.host.number, ModelServer::Cut::none);
    if (worker.process) worker.process->dies_after.reset();
    if (worker.frozen) worker.frozen = machine_.clock().now();
    if (!worker.daemon) worker.start_at = machine_.clock().now();
    for (SimulatedKeeper* keeper : worker.population->keepers()) keeper->process().dies_after.reset();
  }
  const base::TimePoint until = machine_.clock().now() + time_to_rest;
  base::TimePoint next_cancel = machine_.clock().now() + seconds(20);
  const base::TimePoint arrived = machine_.clock().now() + ModelServer::longest_way;
  while (!truth_.violation() && machine_.clock().now() < until &&
         (machine_.clock().now() < arrived || !has_come_to_rest())) {
    live_on();
    if (machine_.clock().now() < next_cancel) continue;
    cancel_endless();
    next_cancel += minutes(1);
  }
  const base::TimePoint end = machine_.clock().now() + seconds(30);
  while (!truth_.violation() && machine_.clock().now() < end) live_on();
  if (truth_.violation()) return;
  check_processes();
  truth_.check_ends();
  for (Worker& worker : workers_) {
    if (worker.daemon) truth_.check_told(worker.host.number, worker.daemon->next_event());
  }
}

void ClusterSimulation::live_on() {
  ++steps_;
  proceed();
  look();
}

void ClusterSimulation::cancel_endless() {
  for (const task::TaskId id : truth_.endless_tasks()) {
    for (Worker& worker : workers_) {
      if (!worker.daemon || worker.stopping) continue;
      cancel(worker, id);
      break;
    }
  }
}

void ClusterSimulation::check_processes() {
  for (Worker& worker : workers_) {
    for (const auto& tree : worker.population->living_trees()) {
      truth_.fail("processes of " + task::to_text(tree->run.task) + " run for ever on " + worker.host.name);
    }
  }
}

}  // namespace duet::simulate
