#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "duet/base/fd.h"
#include "duet/transport/loop.h"
#include "process/process_tree.h"
#include "task/run_record.h"

namespace duet::task {

/// The processes of a run whose keeper is dead, as far as they can be told: those with its mark in their environment,
/// the main process, all that are in the run's cgroup or in one session with one of them, and all their descendants.
/// Without a cgroup a process that cleared its environment, left its session and lost its parents cannot be found.
std::vector<process::ProcessEntry> find_leftovers(const Fingerprint& fingerprint);

/// Ends them, and removes the cgroup: TERM, and after `grace` KILL, until none is found any more and the cgroup, if
/// there is one, is empty. Then `done` is called, from the loop. While there are no descriptors to look for them it
/// waits. Dropped before that, it leaves them as they are. For the loop's thread only.
class Leftovers final : transport::Loop::Watcher {
 public:
  Leftovers(transport::Loop& loop, Fingerprint fingerprint, std::chrono::milliseconds grace,
            std::function<void()> done);
  Leftovers(const Leftovers&) = delete;
  Leftovers& operator=(const Leftovers&) = delete;

 private:
  struct Held {
    base::Fd process;
    transport::Loop::Watch watch;
  };

  void on_ready(std::uint32_t events) override;
  void look();
  enum class Found : std::uint8_t { nothing, some, unknown };
  Found hold_more();
  bool clear_cgroup() const;
  void kill_after(std::chrono::milliseconds time);

  transport::Loop& loop_;
  Fingerprint fingerprint_;
  std::function<void()> done_;
  bool killing_ = false;
  std::map<std::pair<pid_t, std::uint64_t>, Held> held_;
  std::set<std::pair<pid_t, std::uint64_t>> told_;  // to end
  transport::Loop::Timer timer_;
  transport::Loop::Timer look_again_;
};

}  // namespace duet::task
