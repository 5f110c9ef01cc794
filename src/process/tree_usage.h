#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "process/process_tree.h"

namespace duet::process {

/// What processes have used.
struct Usage {
  std::chrono::microseconds cpu{0};  ///< of user and system together
  std::uint64_t max_memory = 0;      ///< bytes
};

/// What the tree below this process uses, without a cgroup. For a sub-reaper that reaps every child with wait4().
///
/// CPU time is that of all processes that were reaped, those included that they had waited for, and of those that live
/// at the last look. What a process leaves to the kernel to reap (SIGCHLD ignored) is not in it. Memory is the most
/// that one process had resident at any time, or the most that all had together at one of the looks, pages that they
/// share counted once (their Pss): a peak of many between two looks is not seen.
///
/// Who is spared is no part of the tree, nor is what descends from it; of one that has ended that is known if it was
/// there at the last look.
class TreeUsage {
 public:
  explicit TreeUsage(Spared spared = {}) : spared_(std::move(spared)) {}

  void reaped(pid_t pid, const rusage& used);
  /// At the processes that live below this one.
  void look();
  /// `living`: look at what those have used as well.
  Usage so_far(bool living) const;

 private:
  Spared spared_;
  std::set<pid_t> others_;  // that were spared at the last look
  std::chrono::microseconds reaped_{0};
  std::uint64_t largest_ = 0;   // process
  std::uint64_t together_ = 0;  // at one look
};

/// From now on the peak of this process is what it has at present. For the kernel it is that of a child, too, which has
/// this process's memory before it executes a program.
void forget_peak_memory();

/// The processes that descend from `root`, found from parent to child without a look at all others, each once. Empty
/// where the kernel does not tell.
std::vector<pid_t> children_below(pid_t root, const Spared& spared = {});

}  // namespace duet::process
