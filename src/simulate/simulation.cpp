#include "simulate/simulation.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <utility>

#include "duet/base/utc_text.h"
#include "duet/rpc/value.h"
#include "task/run_record.h"
#include "task/store_folder.h"

namespace duet::simulate {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

constexpr seconds patience{180};  // of whoever asks for something
constexpr std::chrono::hours time_to_rest{12};

std::int64_t since_start(base::TimePoint now) {
  return std::chrono::duration_cast<milliseconds>(now.time_since_epoch() - std::chrono::hours(1)).count();
}

}  // namespace

Simulation::Simulation(SimulationOptions options)
    : options_(options),
      chance_(options.seed),
      trace_(options.loud),
      machine_(chance_.next()),
      agenda_(machine_.clock()),
      model_(machine_.clock()),
      population_(
          machine_, agenda_, trace_,
          {.began = [this](const Tree& tree) { model_.tree_began(tree, population_.living_trees()); },
           .main_ended = [this](const Tree& tree, int status, bool kept) { model_.main_ended(tree, status, kept); },
           .gone = [](const Tree&) {},
           .ordered = [this](task::RunId run) { model_.ordered(run); },
           .wrote = [this](task::RunId run, std::string_view bytes,
                           task::Stream stream) { model_.output().took(run, bytes, machine_.trouble.any(), stream); },
           .keeper_died = [this](task::RunId run, bool at_work) { model_.keeper_killed(run, at_work); },
           .output_unsynced = [this](task::RunId run) { model_.output().sync_failed(run); }}) {
  if (options_.disk) {
    machine_.on_change = [this](Disk::Step step, std::string_view name, int error) {
      static constexpr std::array<const char*, 5> names{"write", "grow", "sync", "make", "remove"};
      note(std::string(names.at(static_cast<std::size_t>(step))) + ' ' + std::string(name) +
           (machine_.process() != nullptr ? " by " + machine_.process()->name : "") +
           (error != 0 ? " fails with " + std::to_string(error) : ""));
    };
  }
  habits_.requests = chance_.between(20, 300);
  habits_.faults = chance_.one_in(5) ? 0 : chance_.between(2, 40);
  habits_.power_cuts = chance_.one_in(2);
  habits_.disk_fails = chance_.one_in(2);
  habits_.keepers_die = chance_.one_in(2);
  habits_.wall_jumps = chance_.one_in(4);
  set_habits_of_queue();
  settings_.max_running = chance_.between(1, 4);
  settings_.queue_capacity = chance_.one_in(3) ? chance_.between(1, 8) : 1000;
  settings_.keep_tasks = chance_.one_in(2) ? chance_.between(1, 10) : 1000;
  model_.set_limits(settings_);
  if (chance_.one_in(2)) {
    limits_.journal = {.bytes = chance_.between(8, 32) << 10U, .removed_at_once = 20};
    limits_.events.unread_bytes = chance_.between(200, 4000);
    limits_.events.unread_output_bytes = 4 * limits_.events.unread_bytes;
  }
  audience_ =
      std::make_unique<Audience>(population_, model_, [this](const std::function<void()>& work) { as_daemon(work); });
  if (chance_.one_in(3)) return;
  rules_ = {{.id = echo_rule,
             .trigger = {.source = "task", .type = "task.completed"},
             .action = {.prompt = "after {{payload.taskId}}"}},
            {.id = asking_rule,
             .trigger = {.source = "task", .type = "task.failed"},
             .action = {.prompt = "instead of {{payload.taskId}}"},
             .requires_approval = true}};
}

Simulation::~Simulation() {
  if (!daemon_) return;
  process_->dead = true;
  as_daemon([&] { daemon_.reset(); });
}

void Simulation::note(const std::string& what) {
  trace_.note(std::to_string(since_start(machine_.clock().now())) + " ms: " + what);
}

void Simulation::as_daemon(const std::function<void()>& work) {
  const Machine::As as(machine_, *process_);
  try {
    work();
  } catch (const std::exception& error) {
    if (!process_->dead) model_.fail(std::string("an exception left the daemon: ") + error.what());
  }
}

Verdict Simulation::run() {
  const base::TimePoint begun = machine_.clock().now();
  try {
    for (steps_ = 0; steps_ < options_.steps && !model_.violation(); ++steps_) step();
    if (!model_.violation()) finish();
  } catch (const std::exception& error) {
    model_.fail(std::string("an exception left the simulation: ") + error.what());
  }
  return {.violation = model_.violation(),
          .step = steps_,
          .digest = trace_.digest(),
          .simulated = machine_.clock().now() - begun,
          .tasks = model_.count(),
          .lives = lives_,
          .cuts = cuts_,
          .last = trace_.last()};
}

void Simulation::step() {
  if (!daemon_ && chance_.one_in(4)) {
    start();
  } else if (const std::uint64_t choice = chance_.below(1000); choice < habits_.faults) {
    cause_fault();
  } else if (daemon_ && choice < habits_.faults + habits_.requests) {
    request();
  } else {
    proceed();
  }
  look();
  model_.next_turn();
}

// What is due happens, in any order; if nothing is, time passes.
void Simulation::proceed() {
  const base::TimePoint now = machine_.clock().now();
  const std::optional<base::TimePoint> daemons = daemon_ ? daemon_->loop().next() : std::nullopt;
  const bool daemon_is_due = daemons && *daemons <= now;
  if (agenda_.has_due() && (!daemon_is_due || chance_.one_in(2))) return agenda_.do_next();
  if (daemon_is_due) return as_daemon([&] { daemon_->loop().turn(now); });
  constexpr base::Duration longest = std::chrono::hours(1);
  base::Duration wait = daemon_ ? longest : base::Duration(milliseconds(chance_.below(20'000)));
  if (daemons) wait = std::min(wait, *daemons - now);
  if (const auto next = agenda_.next()) wait = std::min(wait, *next - now);
  machine_.clock().advance(wait);
}

void Simulation::look() {
  if (daemon_ && process_->dead) return clear_dead_daemon();
  if (daemon_ && stopped_) {
    note("the daemon has stopped");
    check_all_answered();
    audience_->daemon_is_gone(false);
    as_daemon([&] { daemon_.reset(); });
    machine_.end(*process_);
    unanswered_.clear();
    stopped_ = stopping_ = false;
    death_.reset();
    return;
  }
  if (daemon_ && !daemon_->store().is_healthy() && !model_.was_troubled_lately()) {
    return model_.fail("the store is not healthy on a sound disk: " + daemon_->store().health().problem);
  }
  for (const auto& [number, request] : unanswered_) {
    if (machine_.clock().now() > request.patience_ends) return model_.fail("no answer to " + request.what);
  }
}

// ---- the daemon's lives ----

void Simulation::start() {
  note("the daemon starts");
  ++lives_;
  process_ = std::make_unique<Process>(Process{"daemon"});
  started_ = machine_.clock().now();
  if (habits_.faults > 0 && chance_.one_in(died_unsynced_ ? 2 : 10)) {
    process_->dies_after = chance_.below(100);
    process_->finishes_last_change = chance_.one_in(2);
    death_ = habits_.power_cuts && chance_.one_in(2) ? Death::power_cut : Death::kill;
  }
  died_unsynced_ = false;
  model_.daemon_started();
  const Machine::As as(machine_, *process_);
  try {
    daemon_ = std::make_unique<Daemon>(
        population_, *process_, settings_, rules_, limits_,
        Daemon::Ears{.event =
                         [this](const task::Event& event, const std::optional<task::Task>& task) {
                           if (process_->dead) return;
                           note("event " + std::to_string(event.seq) + ' ' + event.kind + ' ' +
                                task::to_text(event.task));
                           model_.told(event, task);
                         },
                     .opened =
                         [this](const task::Journal& journal) {
                           if (!process_->dead) model_.compare_journal(journal);
                           return model_.next_seq();
                         }});
  } catch (const std::exception& error) {
    note(std::string("it cannot start: ") + error.what());
    if (!process_->dead && !machine_.trouble.any())
      model_.fail(std::string("the daemon cannot start: ") + error.what());
    clear_dead_daemon();
    return;
  }
  if (!process_->dead) compare(false);
}

void Simulation::stop(bool force, bool leave) {
  note(std::string("stop") + (force ? " by force" : "") + (leave ? ", tasks go on" : ""));
  stopping_ = true;
  as_daemon([&] {
    daemon_->supervisor().close();
    daemon_->automation().close();
    const auto done = [this, process = process_.get()] {
      if (!process->dead && process == process_.get()) stopped_ = true;
    };
    expect_answer(++requests_, "stop", true);
    if (leave) {
      daemon_->supervisor().leave(done);
    } else {
      model_.stopped_tasks();
      daemon_->supervisor().stop(force, done);
    }
  });
}

void Simulation::die(Death death) {
  death_ = death;
  if (chance_.one_in(3)) {
    process_->dead = true;
  } else {
    process_->dies_after = chance_.below(60);
    process_->finishes_last_change = chance_.one_in(2);
  }
}

// Nothing that it still does on its way down has any effect.
void Simulation::clear_dead_daemon() {
  const bool cut = death_ == Death::power_cut;
  process_->dead = true;
  died_unsynced_ = machine_.trouble.syncs_fail;
  model_.daemon_died();
  death_.reset();
  note(cut ? "the power is cut" : "the daemon is killed");
  audience_->daemon_is_gone(cut);
  as_daemon([&] { daemon_.reset(); });
  machine_.end(*process_);
  unanswered_.clear();
  stopped_ = stopping_ = false;
  if (cut) cut_power();
}

void Simulation::cut_power() {
  ++cuts_;
  population_.cut_power();
  agenda_.clear();
  machine_.cut_power();
  model_.power_cut();
  end_trouble();
}

// ---- what clients do ----

void Simulation::expect_answer(std::uint64_t request, const std::string& what, bool may_be_dropped) {
  unanswered_[request] = {what, machine_.clock().now() + patience, may_be_dropped};
}

void Simulation::take_answer(std::uint64_t request) {
  if (unanswered_.erase(request) == 0) model_.fail("request " + std::to_string(request) + " is answered twice");
}

// A refusal must have its reason: that the daemon stops, or that the disk is or was in trouble.
void Simulation::judge(const std::string& what, const rpc::Error& error) {
  constexpr int unavailable = -32003;
  if (error.code() != unavailable) return;
  const std::string subsystem(rpc::parse_value(error.data()).at("subsystem").as_string());
  const bool is_stop = subsystem == "supervisor" && stopping_;
  const bool is_trouble = (subsystem == "store" || subsystem == "output") && model_.was_troubled_lately();
  if (!is_stop && !is_trouble) model_.fail(what + " was refused without need: " + error.message());
}

// Whoever submitted or waited before a clean stop was told what came of it, or that the daemon stops. Others are
// refused by their connection, which is not simulated, if a disk in trouble keeps their answer until then.
void Simulation::check_all_answered() {
  for (const auto& [number, request] : unanswered_) {
    if (!request.may_be_dropped) model_.fail("the daemon has stopped, and nobody answered " + request.what);
  }
}

task::TaskId Simulation::some_task() {
  const std::vector<task::TaskId> open = model_.open_tasks();
  if (!open.empty() && !chance_.one_in(4)) return open[chance_.below(open.size())];
  const std::vector<task::TaskId> all = model_.all_tasks();
  return all.empty() ? 1 : all[chance_.below(all.size())];
}

void Simulation::request() {
  switch (chance_.below(17)) {
    case 0:
    case 1:
      return cancel();
    case 2:
      return wait();
    case 3:
      return read_output();
    case 4:
      if (chance_.one_in(3)) change_settings();
      if (chance_.one_in(3)) submit_again();
      return;
    case 5:
      return approve();
    case 6:
    case 7:
      return audience_->act(*daemon_);
    case 8:
    case 9:
    case 10:
      return act_on_queue();
    default:
      submit();
  }
}

void Simulation::submit() {
  const bool has_limit = chance_.one_in(10);
  const bool is_endless = has_limit && chance_.one_in(2);
  const std::uint64_t prompt = chance_.next() >> 20U;
  task::Submission submission{.prompt = is_endless ? endless_prompt_of(prompt) : prompt_of(prompt)};
  submission.priority = static_cast<std::int64_t>(chance_.below(3));
  if (chance_.one_in(3)) submission.retries = static_cast<std::uint32_t>(chance_.between(1, 3));
  if (has_limit) submission.time_limit = milliseconds(chance_.below(5000));
  if (chance_.one_in(4) && model_.count() > 0) {
    for (std::uint64_t i = chance_.between(1, 2); i > 0; --i) submission.after.push_back(some_task());
  }
  if (chance_.one_in(2)) submission.group = chance_.one_in(2) ? wide_group : narrow_group;
  if (chance_.one_in(5)) submission.agent = limited_agent;
  if (chance_.one_in(10)) submission.delay = milliseconds(chance_.below(60'000));
  if (!submission.delay && chance_.one_in(20)) {
    submission.not_before = machine_.clock().utc() + milliseconds(chance_.below(60'000));
  }
  if (chance_.one_in(8)) {
    submission.key = "key " + submission.prompt;
    keyed_.push_back(submission);
  }
  send(submission);
}

// Whoever got no answer asks again, and others do so without need.
void Simulation::submit_again() {
  if (!keyed_.empty()) send(keyed_[chance_.below(keyed_.size())]);
}

void Simulation::send(const task::Submission& submission) {
  const std::uint64_t number = ++requests_;
  model_.submitted(submission);
  std::string asked = "submit " + submission.prompt + ", priority " + std::to_string(submission.priority.value_or(0)) +
                      ", retries " + std::to_string(submission.retries.value_or(0));
  for (const task::TaskId id : submission.after) asked += ", after " + task::to_text(id);
  if (!submission.group.empty()) asked += ", group " + submission.group;
  if (submission.agent) asked += ", agent " + *submission.agent;
  if (submission.delay) asked += ", delay " + std::to_string(submission.delay->count());
  if (submission.not_before) asked += ", not before " + base::utc_text(*submission.not_before);
  note(asked);
  expect_answer(number, "submit of " + submission.prompt);
  as_daemon([&] {
    daemon_->supervisor().submit(submission, [this, submission, number, process = process_.get()](
                                                 const tl::expected<task::Accepted, rpc::Error>& answer) {
      if (process->dead) return;
      take_answer(number);
      note(submission.prompt +
           (answer ? " is " + task::to_text(answer->id) : " is refused: " + answer.error().message()));
      if (answer) return model_.accepted(submission, answer->id);
      judge("submit of " + submission.prompt, answer.error());
      model_.refused(submission, answer.error().code());
    });
  });
}

void Simulation::cancel() {
  const task::TaskId id = some_task();
  const std::uint64_t number = ++requests_;
  note("cancel " + task::to_text(id));
  model_.asked_to_cancel(id);
  expect_answer(number, "cancel of " + task::to_text(id), true);
  as_daemon([&] {
    daemon_->supervisor().cancel(
        id, [this, id, number, process = process_.get()](const tl::expected<void, rpc::Error>& answer) {
          if (process->dead) return;
          take_answer(number);
          note("cancel of " + task::to_text(id) + (answer ? " is acknowledged" : " is refused"));
          if (answer) return model_.cancelled(id, !stopping_);
          judge("cancel of " + task::to_text(id), answer.error());
          model_.cancel_refused(id, answer.error());
        });
  });
}

void Simulation::wait() {
  const task::TaskId id = some_task();
  const std::uint64_t number = ++requests_;
  const base::Duration limit = seconds(chance_.below(60));
  const base::TimePoint time_is_up = machine_.clock().now() + limit;
  note("wait for " + task::to_text(id));
  expect_answer(number, "wait for " + task::to_text(id));
  as_daemon([&] {
    daemon_->supervisor().wait(
        id, limit,
        [this, id, number, time_is_up, process = process_.get()](const tl::expected<task::Task, rpc::Error>& answer) {
          if (process->dead) return;
          take_answer(number);
          take_waited(id, time_is_up, answer);
        });
  });
}

void Simulation::take_waited(task::TaskId id, base::TimePoint time_is_up,
                             const tl::expected<task::Task, rpc::Error>& answer) {
  const std::string what = "wait for " + task::to_text(id);
  if (!answer) {
    note(what + " is refused: " + answer.error().message());
    judge(what, answer.error());
    return model_.told_unknown(id, answer.error().code());
  }
  note(what + ": " + std::string(task::name_of(answer->progress.state)));
  model_.waited(id, answer->progress.state, machine_.clock().now() >= time_is_up);
}

void Simulation::read_output() {
  const task::TaskId id = some_task();
  const std::string what = "output of " + task::to_text(id);
  as_daemon([&] {
    const std::uint64_t offset = chance_.one_in(2) ? 0 : chance_.below(50);
    const std::size_t limit = chance_.one_in(2) ? 1U << 20U : chance_.between(1, 20);
    const auto output = daemon_->supervisor().output(id, offset, limit);
    if (process_->dead) return;
    if (!output) {
      note(what + " is refused: " + output.error().message());
      judge(what, output.error());
      return model_.told_unknown(id, output.error().code());
    }
    note(what + " from " + std::to_string(output->piece.offset) + ": " + std::to_string(output->piece.bytes.size()) +
         " bytes of " + std::to_string(output->piece.total) + (output->done ? ", done" : ""));
    model_.output_read(id, output->piece, output->done);
  });
}

void Simulation::approve() {
  if (rules_.empty()) return;
  std::vector<std::string> waiting;
  as_daemon([&] {
    const boost::json::object status = daemon_->automation().status();
    for (const boost::json::value& firing : status.at("recent").as_array()) {
      const boost::json::value* reason = firing.as_object().if_contains("reason");
      if (reason != nullptr && reason->as_string() == "approval") waiting.emplace_back(firing.at("id").as_string());
    }
  });
  if (waiting.empty()) return;
  const std::string id = waiting[chance_.below(waiting.size())];
  const std::uint64_t number = ++requests_;
  note("approve " + id);
  model_.approving(id);
  expect_answer(number, "approval of " + id, true);
  as_daemon([&] {
    daemon_->automation().approve(
        id, [this, id, number, process = process_.get()](const std::optional<rpc::Error>& error) {
          if (process->dead) return;
          take_answer(number);
          note("approval of " + id + (error ? " is refused: " + error->message() : " is acknowledged"));
          if (error) judge("approval of " + id, *error);
          error ? model_.approval_refused(id) : model_.approved(id);
        });
  });
}

void Simulation::change_settings() {
  settings_.max_running = chance_.between(1, 4);
  settings_.queue_capacity = chance_.one_in(3) ? chance_.between(1, 8) : 1000;
  settings_.keep_tasks = chance_.one_in(2) ? chance_.between(1, 10) : 1000;
  note("settings: max_running " + std::to_string(settings_.max_running) + ", queue_capacity " +
       std::to_string(settings_.queue_capacity) + ", keep_tasks " + std::to_string(settings_.keep_tasks));
  model_.set_limits(settings_);
  as_daemon([&] {
    daemon_->configure(rules_);
    daemon_->supervisor().change_settings(settings_);
  });
}

// ---- what goes wrong ----

void Simulation::cause_fault() {
  switch (chance_.below(10)) {
    case 0:
    case 1:
      if (daemon_) die(Death::kill);
      return;
    case 2:
      if (!habits_.power_cuts) return;
      if (daemon_) return die(Death::power_cut);
      note("the power is cut");
      return cut_power();
    case 3:
      if (daemon_ && !stopping_) stop(chance_.one_in(2), false);
      return;
    case 4:
      if (daemon_ && !stopping_) stop(false, true);
      return;
    case 5: {
      const auto keepers = population_.keepers();
      if (!habits_.keepers_die || keepers.empty()) return;
      SimulatedKeeper& keeper = *keepers[chance_.below(keepers.size())];
      if (chance_.one_in(2)) return keeper.kill();
      keeper.process().dies_after = chance_.below(8);
      keeper.process().finishes_last_change = chance_.one_in(2);
      return;
    }
    case 6: {
      const auto keepers = population_.keepers();
      if (!habits_.keepers_die || keepers.empty()) return;
      SimulatedKeeper& keeper = *keepers[chance_.below(keepers.size())];
      if (!keeper.tree()) return;
      model_.keeper_suspended(keeper.tree()->run);
      return keeper.suspend(!keeper.is_suspended());
    }
    case 7:
      if (habits_.wall_jumps) {
        const std::int64_t by = static_cast<std::int64_t>(chance_.below(2 * 864'000)) - 864'000;
        note("the clock on the wall jumps by " + std::to_string(by) + " s");
        machine_.clock().set_wall(seconds(by));
        model_.wall_jumped();
      }
      return;
    default:
      if (habits_.disk_fails) trouble_disk();
  }
}

void Simulation::trouble_disk() {
  if (machine_.trouble.any() || population_.spawn_error != 0) return;
  switch (chance_.below(6)) {
    case 0:
      machine_.trouble.full = true;
      break;
    case 1:
      machine_.trouble.read_only = true;
      break;
    case 2:
      machine_.trouble.syncs_fail = true;
      break;
    case 3:
      machine_.trouble.writes_fail = true;
      break;
    case 4:
      machine_.trouble.out_of_descriptors = true;
      break;
    default:
      population_.spawn_error = EAGAIN;
  }
  note("trouble");
  model_.set_trouble(true, machine_.trouble.syncs_fail);
  const auto time = chance_.one_in(2) ? milliseconds(chance_.below(100)) : milliseconds(chance_.below(30'000));
  agenda_.after(time, [this] { end_trouble(); });
}

void Simulation::end_trouble() {
  if (machine_.trouble.any() || population_.spawn_error != 0) note("trouble is over");
  machine_.trouble = {};
  population_.spawn_error = 0;
  model_.set_trouble(false);
}

// ---- the end ----

void Simulation::compare(bool everything_has_ended) {
  as_daemon([&] { model_.compare(daemon_->all_tasks(), everything_has_ended); });
}

bool Simulation::has_come_to_rest() {
  return daemon_ && model_.open_tasks().empty() && population_.living_trees().empty() && unanswered_.empty();
}

void Simulation::finish() {
  note("faults cease");
  end_trouble();
  for (SimulatedKeeper* keeper : population_.keepers()) {
    keeper->process().dies_after.reset();
    keeper->suspend(false);
  }
  habits_ = {.requests = 0, .faults = 0};
  audience_->read_all();
  if (process_) process_->dies_after.reset();
  open_all();
  const base::TimePoint until = machine_.clock().now() + time_to_rest;
  while (!model_.violation() && machine_.clock().now() < until && !has_come_to_rest()) live_on();
  let_pass(minutes(10));
  if (model_.violation()) return;
  if (!daemon_->store().is_healthy()) return model_.fail("the store stays " + daemon_->store().health().problem);
  audience_->check_complete();
  compare(true);
  // Two more starts. Files that could not be removed go with the next one. A record that a power cut brought back needs
  // both: the first daemon reads it and learns that its run is over, the second one removes it.
  for (int i = 0; i < 2 && !model_.violation(); ++i) {
    stop(false, false);
    let_pass(minutes(1));
  }
  if (!model_.violation()) check_files();
  if (!model_.violation()) check_ended();
  if (!model_.violation() && !rules_.empty()) check_rules();
}

void Simulation::live_on() {
  ++steps_;
  if (daemon_) {
    proceed();
  } else {
    start();
  }
  look();
  model_.next_turn();
}

void Simulation::let_pass(base::Duration time) {
  const base::TimePoint end = machine_.clock().now() + time;
  while (!model_.violation() && (!daemon_ || machine_.clock().now() < end)) live_on();
}

void Simulation::check_ended() {
  as_daemon([&] {
    const std::vector<task::Task> all = daemon_->all_tasks();
    model_.check_kept(all.size());
    const std::uint64_t most_events =
        daemon_->journal().next() - daemon_->journal().oldest() + 2 * limits_.journal.removed_at_once;
    if (daemon_->count_events() > most_events) model_.fail("the store keeps more and more events");
    for (const task::Task& listed : all) {
      if (const auto task = daemon_->supervisor().find(listed.id)) {
        model_.compare_ended(*task, daemon_->outputs_of(*task));
      }
    }
  });
}

// The firings are counted only if the list goes back to the first one.
void Simulation::check_rules() {
  as_daemon([&] {
    std::map<std::string, std::uint64_t> counts;
    const boost::json::object status = daemon_->automation().status();
    const boost::json::array& firings = status.at("recent").as_array();
    model_.check_approvals();
    for (const boost::json::value& firing : firings) {
      if (firing.at("outcome").as_string() != "fired") continue;
      const auto id = task::parse_task_id(std::string_view(firing.at("taskId").as_string()));
      if (!id || !model_.is_known(*id)) model_.fail("a rule is said to have submitted a task that nobody knows");
    }
    if (firings.size() >= automation::Firings::most_kept) return;
    for (const boost::json::value& firing : firings) ++counts[std::string(firing.at("ruleId").as_string())];
    for (const char* rule : {echo_rule, asking_rule}) model_.compare_firings(rule, counts[rule]);
  });
}

void Simulation::check_files() {
  compare(true);
  for (const auto& tree : population_.living_trees()) {
    model_.fail("processes of " + task::to_text(tree->run.task) + " run for ever");
  }
  const NodePointer tasks = Disk::find(*machine_.disk().root(), "tasks");
  as_daemon([&] {
    for (const auto& [name, node] : tasks->names) {
      std::string_view record = name;
      for (const std::string_view suffix : {".out", ".marks"}) {
        if (record.ends_with(suffix)) record.remove_suffix(suffix.size());
      }
      const auto run = task::run_of_record(record);
      if (run) {
        const auto known = daemon_->store().read([&](task::StoreReader& reader) { return reader.standing(run->task); });
        if (known && !*known) model_.fail(name + " belongs to no task");
      } else if (!task::is_contact_name(name) || population_.find_keeper(name) == nullptr) {
        model_.fail(name + " belongs to nobody");
      }
    }
  });
}

}  // namespace duet::simulate
