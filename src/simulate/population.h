#pragma once

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "duet/base/fd.h"
#include "duet/base/lifetime.h"
#include "simulate/agenda.h"
#include "simulate/machine.h"
#include "simulate/play.h"
#include "simulate/trace.h"
#include "task/keeper_core.h"
#include "task/output_file.h"
#include "task/run_record.h"

namespace duet::simulate {

/// The processes of one run, whether a keeper watches over them or not.
struct Tree {
  struct Member {
    pid_t pid = 0;
    bool ignores_term = false;
    bool alive = true;
    bool signalled = false;  ///< its end is on the agenda
  };

  task::RunId run;
  std::string mark;
  base::TimePoint ordered = {};  ///< when the daemon asked for it
  std::uint64_t fence = 0;       ///< of its claim, in a queue that machines share
  bool leased = false;           ///< its main process dies with its keeper
  Play play;
  std::vector<Member> members;  ///< the main process is the first
  std::function<void(std::size_t member, int status)> on_end = {};

  bool alive() const;
};

/// What connects a daemon and a keeper. Either end may be gone.
struct Wire {
  std::deque<task::Message> to_daemon;
  std::function<void()> wake_daemon = {};  ///< something has come, or the keeper has gone
  bool keeper_gone = false;
  bool daemon_gone = false;
};

class Population;

/// A keeper: the real core, with hands in the simulated machine. It does what task::KeeperProcess does.
class SimulatedKeeper final : task::KeeperHands {
 public:
  struct Work {
    task::Order order;
    base::Fd record;
    base::TimePoint given = {};
  };
  using Call = std::shared_ptr<Wire>;  ///< a daemon connects: its end of the wire
  /// The daemon has closed this wire.
  struct Farewell {
    std::shared_ptr<Wire> wire;
  };
  using Letter = std::variant<task::Message, std::shared_ptr<Work>, Call, Farewell>;

  SimulatedKeeper(Population& population, std::string contact);
  SimulatedKeeper(const SimulatedKeeper&) = delete;
  SimulatedKeeper& operator=(const SimulatedKeeper&) = delete;
  ~SimulatedKeeper() = default;

  const std::string& contact() const { return contact_; }
  pid_t pid() const { return pid_; }
  bool alive() const { return alive_; }
  bool is_idle() const { return !core_; }
  Process& process() { return process_; }
  const std::shared_ptr<Tree>& tree() const { return tree_; }
  /// That it has taken up; none while it is idle.
  std::optional<task::RunId> run() const { return core_ ? std::optional(order_->assignment.run) : std::nullopt; }

  /// Brings it something, a little later, in order.
  void send(Letter letter);
  /// SIGKILL: its tree lives on.
  void kill();
  void suspend(bool suspended);
  bool is_suspended() const { return suspended_; }

 private:
  void read_letters();
  bool take(Letter& letter);
  void begin(Work& work);
  void start();
  void member_ended(std::size_t member, int status);
  void look_at_time();
  void when_awake(const std::function<void()>& deed);
  void acknowledge();
  void end();
  void drop_everything();
  void drop_wire();
  static void hang_up(Wire& wire);

  int write_began(task::RunId run, const std::string& mark) override;
  int write_started(const task::Started& started) override;
  int write_outcome(const task::Outcome& outcome) override;
  int write_gone() override;
  int sync_record() override;
  int note_output() override { return output_->note(); }
  int sync_output() override;
  void append_output(std::string_view bytes, task::Stream stream) override;
  std::uint64_t output_total() const override;
  void signal_tree(int signal) override;
  task::LeaseLeft lease_left() override;
  bool send(const task::Message& message) override;

  Population& population_;
  Process process_;
  std::string contact_;
  pid_t pid_;
  bool alive_ = true;
  bool suspended_ = false;
  std::deque<Letter> letters_;
  std::deque<std::function<void()>> delayed_;  // what happened while it was suspended
  std::shared_ptr<Wire> wire_;
  base::Fd tasks_;
  std::optional<task::Order> order_;
  base::TimePoint ordered_ = {};
  task::RunRecord record_;
  std::optional<task::OutputFile> output_;
  std::optional<task::KeeperCore> core_;
  std::shared_ptr<Tree> tree_;
  base::Lifetime lifetime_;
};

/// What becomes of trees, for the model.
struct Witness {
  std::function<void(const Tree&)> began;
  std::function<void(const Tree&, int status, bool kept)> main_ended;  ///< `kept`: its keeper saw it
  std::function<void(const Tree&)> gone;
  std::function<void(task::RunId)> ordered;  ///< the daemon is about to have it started
  std::function<void(task::RunId, std::string_view bytes, task::Stream)> wrote;  ///< and its keeper took it
  std::function<void(task::RunId, bool at_work)> keeper_died;                    ///< `at_work`: while it did something
  std::function<void(task::RunId)> output_unsynced;                              ///< its keeper could not sync it
};

/// All processes of the machine but the daemon: keepers and what they run. They outlive daemons, not power cuts.
class Population {
 public:
  /// `home`: the folder of its daemon on the disk; empty: the root.
  Population(Machine& machine, Agenda& agenda, Trace& trace, Witness witness, std::string home = {});

  Machine& machine() { return machine_; }
  Agenda& agenda() { return agenda_; }
  Trace& trace() { return trace_; }
  const Witness& witness() const { return witness_; }

  /// A process cannot be started at the moment: an errno, or 0.
  int spawn_error = 0;
  /// What leased runs may rely on.
  std::function<task::LeaseLeft()> lease_left;

  /// The folder of the daemon.
  int open_home();
  SimulatedKeeper& add_keeper(std::string contact);
  SimulatedKeeper* find_keeper(std::string_view contact);
  std::vector<SimulatedKeeper*> keepers();
  std::shared_ptr<Tree> find_tree(std::string_view mark);
  std::vector<std::shared_ptr<Tree>> living_trees() const;

  std::shared_ptr<Tree> plant(const task::Order& order, base::TimePoint ordered, Play play);
  void signal(const std::shared_ptr<Tree>& tree, int signal);
  void cut_power();
  const std::string& boot() const { return machine_.boot(); }
  pid_t next_pid() { return ++last_pid_; }
  void kill_main(const std::shared_ptr<Tree>& tree);
  /// All its processes are killed. The disk keeps what it has.
  void kill_all();
  /// A time that somebody needs to hear of something.
  base::Duration latency();

 private:
  void end_member(const std::shared_ptr<Tree>& tree, std::size_t member, int status, base::Duration after);

  Machine& machine_;
  Agenda& agenda_;
  Trace& trace_;
  Witness witness_;
  std::string home_;
  Random chance_;
  pid_t last_pid_ = 1000;
  std::list<std::unique_ptr<SimulatedKeeper>> keepers_;
  std::list<std::shared_ptr<Tree>> trees_;
};

}  // namespace duet::simulate
