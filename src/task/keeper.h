#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "duet/base/lifetime.h"
#include "duet/base/log.h"
#include "duet/transport/loop.h"
#include "task/keeper_world.h"
#include "task/run.h"
#include "task/runner.h"

namespace duet::task {

class KeptRun;

/// What becomes of runs. Each one that is started or adopted ends in one of two ways: `ended`, then `gone`; or
/// `never_began`. All of it is told from the loop, never inside a call of Keepers. Each must be set.
struct KeeperEvents {
  std::function<void(RunId, const Started&)> started;      ///< also for an adopted run, before what else there is
  std::function<void(RunId, std::uint64_t total)> output;  ///< what follow() asked for
  std::function<void(RunId)> terminated;                   ///< what cancel() asked for: TERM is sent, or it has ended
  std::function<void(RunId, const Outcome&)> ended;        ///< its main process; acknowledge() is to follow
  std::function<void(RunId)> gone;                         ///< no process of it is left: its slot is free
  /// And never will: it may be started again. `why`: what prevented it, and may pass; empty if that is not known.
  std::function<void(RunId, const std::string& why)> never_began;
};

struct KeeperSettings {
  mode_t umask = 022;                        ///< of the tasks
  std::chrono::milliseconds grace{5000};     ///< between TERM and KILL
  std::chrono::milliseconds farewell{2000};  ///< see Order; longer than a Nursery keeps a spare keeper
  std::string cgroups = {};                  ///< the folder for those of runs with limits
};

/// Runs tasks so that they survive this process: each under a keeper of its own, a process that owns the task's pipes
/// and output file, ends its whole tree, and writes down what happened. Where keepers and records are is the world's.
///
/// It does not queue, count slots, retry or know the store. start() leaves a record before anything can begin: after a
/// restart every run that has one, or that the store believes to be running, and that has no outcome is to be adopted.
/// Destruction leaves running tasks alone. For the loop's thread only.
class Keepers final : public Runner {
 public:
  /// The world must outlive it.
  Keepers(transport::Loop& loop, base::Log& log, KeeperWorld& world, KeeperSettings settings, KeeperEvents events);
  Keepers(const Keepers&) = delete;
  Keepers& operator=(const Keepers&) = delete;
  ~Keepers();

  /// Begins a run that has never begun. What prevents it becomes an outcome of the kind `not_started`, unless it says
  /// nothing about the task and may pass, as a full disk or a fork that fails: then it never began, and is to be
  /// started later. So it is, too, while a stray of that number is being ended.
  void start(const Assignment& assignment) override;

  /// Finds out what became of a run that another daemon began, or meant to.
  void adopt(RunId run) override;

  /// Ends what is left of all runs that have a record and are not kept here, without a word, and removes their records.
  /// Throws std::system_error if the records cannot be listed.
  void end_strays();

  /// TERM to the whole tree; KILL to what is left after the grace. The outcome is what the main process makes of it.
  void cancel(RunId run) override;

  /// Calls `output` once, when there is output beyond `offset`, or soon if there is. For a run that has not gone.
  void follow(RunId run, std::uint64_t offset) override;

  /// The outcome is safe in the store: the keeper need not see to it, and its record is removed. The output stays.
  void acknowledge(RunId run) override;

  std::optional<RunId> run_of_keeper(pid_t keeper) override;
  std::optional<LeftRun> left_by(RunId run) override;
  std::vector<RunId> outputs() override { return world_.recorded_outputs(); }
  /// Not while it may be needed to end the run.
  void remove_output(RunId run) override;

  /// Runs that are started or adopted and have not gone.
  std::size_t count() const { return runs_.size(); }

 private:
  friend class KeptRun;

  KeptRun* find(RunId run) const;
  KeptRun& add(RunId run, const KeeperEvents& events);
  void forget(RunId run);

  transport::Loop& loop_;
  base::Log& log_;
  KeeperWorld& world_;
  KeeperSettings settings_;
  KeeperEvents events_;
  KeeperEvents silence_;
  std::map<RunId, std::unique_ptr<KeptRun>> runs_;
  std::map<RunId, std::unique_ptr<KeeperLine>> unacknowledged_;  // of runs that have gone
  std::set<RunId> unwritten_;         // of those: the record does not say it all, and stays for the keeper
  std::map<RunId, int> vain_starts_;  // how often no keeper took up an order
  base::Lifetime lifetime_;
};

}  // namespace duet::task
