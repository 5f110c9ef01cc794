#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "simulate/agenda.h"
#include "simulate/audience.h"
#include "simulate/daemon.h"
#include "simulate/machine.h"
#include "simulate/model.h"
#include "simulate/population.h"
#include "simulate/random.h"
#include "simulate/trace.h"

namespace duet::simulate {

struct SimulationOptions {
  std::uint64_t seed = 1;
  std::uint64_t steps = 2000;
  bool loud = false;  ///< the whole trace, as it happens
  bool disk = false;  ///< with every change of the disk in it
};

/// What came of a simulation.
struct Verdict {
  std::optional<std::string> violation;
  std::uint64_t step = 0;  ///< at which it was found, or how many there were
  std::uint64_t digest = 0;
  base::Duration simulated = {};
  std::uint64_t tasks = 0;
  std::uint64_t lives = 0;
  std::uint64_t cuts = 0;
  std::deque<std::string> last;
};

/// One run of the world, decided by its seed: clients ask, tasks run, the disk fails, daemons and keepers are killed,
/// the power is cut; and after each step the model is asked whether all is as promised. At the end all faults cease,
/// and everything must come to its end.
class Simulation {
 public:
  explicit Simulation(SimulationOptions options);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;
  ~Simulation();

  Verdict run();

 private:
  enum class Death : std::uint8_t { kill, power_cut };
  /// What happens in this simulation: in how many of a thousand steps somebody asks for something, and something goes
  /// wrong; and what may go wrong.
  struct Habits {
    std::uint64_t requests = 150;
    std::uint64_t faults = 20;
    bool power_cuts = true;
    bool disk_fails = true;
    bool keepers_die = true;
    bool wall_jumps = true;
  };

  struct Unanswered {
    std::string what;
    base::TimePoint patience_ends;
    bool may_be_dropped;  // by a daemon that stops
  };

  void step();
  void proceed();
  void look();
  void compare(bool everything_has_ended);

  void start();
  void stop(bool force, bool leave);
  void die(Death death);
  void clear_dead_daemon();
  void cut_power();

  void request();
  void submit();
  void submit_again();
  void send(const task::Submission& submission);
  void cancel();
  void wait();
  void take_waited(task::TaskId id, base::TimePoint time_is_up, const tl::expected<task::Task, rpc::Error>& answer);
  void read_output();
  void approve();
  void set_habits_of_queue();
  void act_on_queue();
  void pause();
  void set_paused(const std::optional<std::string>& group, bool paused);
  void hold(task::TaskId id, bool held);
  void edit();
  void send_edit(task::TaskId id, const task::Supervisor::Edit& edit);
  void restart();
  void remove();
  void release_agent();
  void open_all();
  void change_settings();

  void cause_fault();
  void trouble_disk();
  void end_trouble();

  void finish();
  void live_on();
  void let_pass(base::Duration time);
  bool has_come_to_rest();
  void check_files();
  void check_rules();
  void check_ended();

  void as_daemon(const std::function<void()>& work);
  void expect_answer(std::uint64_t request, const std::string& what, bool may_be_dropped = false);
  void take_answer(std::uint64_t request);
  void judge(const std::string& what, const rpc::Error& error);
  void check_all_answered();
  task::TaskId some_task();
  void note(const std::string& what);

  SimulationOptions options_;
  Random chance_;
  Trace trace_;
  Machine machine_;
  Agenda agenda_;
  Model model_;
  Population population_;
  Habits habits_;
  task::TaskSettings settings_;
  Daemon::Limits limits_;
  std::vector<automation::Rule> rules_;
  std::unique_ptr<Process> process_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Audience> audience_;
  std::optional<Death> death_;  // that awaits the daemon
  bool died_unsynced_ = false;  // the last daemon was killed while syncs failed
  bool stopping_ = false;       // it was asked to stop
  bool stopped_ = false;        // and says that it has
  base::TimePoint started_ = {};
  std::map<std::uint64_t, Unanswered> unanswered_;
  std::uint64_t requests_ = 0;
  std::vector<task::Submission> keyed_;  // that were submitted with a key
  std::uint64_t steps_ = 0;
  std::uint64_t lives_ = 0;
  std::uint64_t cuts_ = 0;
};

}  // namespace duet::simulate
