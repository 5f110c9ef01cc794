#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/daemon/event_hub.h"
#include "automation/engine.h"
#include "duet/base/fd.h"
#include "duet/base/log.h"
#include "duet/base/log_sink.h"
#include "duet/peer/server.h"
#include "duet/transport/loop.h"
#include "simulate/client_line.h"
#include "simulate/output_truth.h"
#include "simulate/population.h"
#include "simulate/simulated_world.h"
#include "task/journal.h"
#include "task/keeper.h"
#include "task/store.h"
#include "task/supervisor.h"

namespace duet::simulate {

/// One life of the daemon: the rooms behind its doors, put together as the program does it, on the simulated machine.
/// Its calls are to be made as its process (Machine::As). Whether it dies or ends is for the simulation to decide.
class Daemon {
 public:
  struct Ears {
    /// With the task, if the event is that of a new one and the store still has it.
    std::function<void(const task::Event&, const std::optional<task::Task>&)> event;
    /// The journal, as the store has it at the start. Answers with the number of the first event that nobody was told
    /// of in an earlier life; those from there on are told before all others.
    std::function<std::uint64_t(const task::Journal&)> opened;
  };
  struct Limits {
    task::Journal::Limits journal = {};
    app::EventHub::Limits events = {};
  };

  /// Throws task::StoreError, rpc::Error or std::system_error if it cannot start.
  Daemon(Population& population, Process& process, task::TaskSettings settings,
         const std::vector<automation::Rule>& rules, const Limits& limits, const Ears& ears);
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon();

  transport::Loop& loop() { return loop_; }
  task::Store& store() { return *store_; }
  task::Journal& journal() { return *journal_; }
  task::Supervisor& supervisor() { return *supervisor_; }
  automation::Engine& automation() { return *automation_; }
  std::vector<task::Task> all_tasks();
  /// In the store, which may have more than the journal.
  std::uint64_t count_events();
  /// Of each of its attempts.
  std::vector<RunOutput> outputs_of(const task::Task& task);
  /// A client that listens to events.
  void admit(const std::shared_ptr<ClientWire>& wire);
  void configure(const std::vector<automation::Rule>& rules);

 private:
  peer::ServerEvents server_events();
  void open_journal(const Limits& limits, const Ears& ears);
  void hear(const Ears& ears, const task::Event& event);
  void add_methods();
  void begin_automation(const std::vector<automation::Rule>& rules);

  Population& population_;
  Process& process_;
  transport::Loop loop_;
  base::Log log_{nullptr};
  base::Fd root_;
  base::Fd tasks_;
  peer::Server server_;
  std::unique_ptr<task::Store> store_;
  std::unique_ptr<task::Journal> journal_;
  std::unique_ptr<app::EventHub> hub_;
  std::unique_ptr<task::Supervisor> supervisor_;
  std::unique_ptr<SimulatedWorld> world_;
  std::unique_ptr<task::Keepers> keepers_;
  std::unique_ptr<automation::Engine> automation_;
};

}  // namespace duet::simulate
