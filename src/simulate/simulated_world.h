#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>

#include "duet/transport/loop.h"
#include "simulate/population.h"
#include "task/keeper_world.h"

namespace duet::simulate {

class SimulatedLine;

/// The daemon's way to simulated keepers, and to their records on the simulated disk. One for each daemon; what it
/// reaches is the population's and outlives it.
class SimulatedWorld final : public task::KeeperWorld {
 public:
  SimulatedWorld(transport::Loop& loop, Population& population, Process& daemon, int tasks);
  SimulatedWorld(const SimulatedWorld&) = delete;
  SimulatedWorld& operator=(const SimulatedWorld&) = delete;
  ~SimulatedWorld();

  Got<task::KeeperLine> take_keeper() override;
  void put_back(std::unique_ptr<task::KeeperLine> line, std::optional<task::RunId> acknowledged) override;
  std::unique_ptr<task::KeeperLine> meet(const std::string& contact) override;
  void remove_contact(const std::string& contact) override;
  void remove_contacts_except(const std::set<std::string>& contacts) override;

  Got<task::KeptRecord> make_record(task::RunId run, const std::string& contact) override;
  Got<task::KeptRecord> open_record(task::RunId run) override;
  void remove_record(task::RunId run) override;
  void remove_output(task::RunId run) override;
  std::vector<task::RunId> recorded_runs() override;
  std::vector<task::RunId> recorded_outputs() override;

  std::unique_ptr<task::Pursuit> end_leftovers(const task::Fingerprint& fingerprint, std::chrono::milliseconds grace,
                                               std::function<void()> done) override;
  void wake_keeper(const task::Fingerprint& fingerprint) override;
  std::string random_mark() override;

 private:
  transport::Loop& loop_;
  Population& population_;
  Process& daemon_;
  int tasks_;
  std::list<std::unique_ptr<SimulatedLine>> spares_;
};

}  // namespace duet::simulate
