#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/clock.h"
#include "duet/base/fd.h"
#include "process/cgroup.h"
#include "process/process_tree.h"
#include "process/tree_usage.h"
#include "task/keeper_core.h"
#include "task/lease_watch.h"
#include "task/order.h"
#include "task/output_file.h"
#include "task/run_record.h"

namespace duet::task {

/// A keeper at work on one run: starts its main process, reads its output, reaps its tree, and has its core decide what
/// becomes of that. Holds the system calls, and no decision.
///
/// It is made for a process of its own: see run_keeper(). It does not know the store, and does not need the daemon.
class KeeperProcess final : KeeperHands {
 public:
  /// What it has for its whole life, however many runs that holds.
  struct Place {
    int tasks = -1;
    base::Fd listener = {};
    base::Fd contact = {};
    base::Fd children = {};  ///< becomes readable when one has ended
    std::vector<char> buffer = {};
  };

  KeeperProcess(Place& place, ReceivedOrder order);
  KeeperProcess(const KeeperProcess&) = delete;
  KeeperProcess& operator=(const KeeperProcess&) = delete;
  ~KeeperProcess() = default;

  /// Until the tree is gone and the outcome is safe. False if it is the keeper's last run.
  bool run();

 private:
  // Its write end is held as well: a pipe without writers would wake the keeper for nothing, since what counts is the
  // end of the processes.
  struct Reading {
    base::Pipe pipe;
    bool is_stdout = false;
  };

  int write_began(RunId run, const std::string& mark) override;
  int write_started(const Started& started) override;
  int write_outcome(const Outcome& outcome) override;
  int write_gone() override;
  int sync_record() override;
  void append_output(std::string_view bytes, Stream stream) override { output_.append(bytes, stream); }
  int note_output() override { return output_.note(); }
  int sync_output() override { return output_.sync(); }
  std::uint64_t output_total() const override { return output_.total(); }
  void signal_tree(int signal) override;
  LeaseLeft lease_left() override { return lease_ ? lease_->left() : LeaseLeft{}; }
  bool send(const Message& message) override;

  void start();
  bool is_spared(const process::ProcessEntry& process) const;
  bool has_others(const process::Cgroup& cgroup) const;
  int timeout() const;
  void wait();
  void read_pipe(const Reading& stream, std::size_t limit);
  void drain();
  void hear_contact();
  void take_contact();
  void reap();
  bool reap_children(std::optional<int>& main_status);
  void look_at_usage();
  void take_end(int status, bool some_live);
  bool only_outsiders_left();

  Order order_;
  base::Fd input_;
  Place& place_;
  RunRecord record_;
  OutputFile output_;
  std::optional<LeaseWatch> lease_;  // of a leased run
  KeeperCore core_;
  pid_t main_ = 0;
  std::uint64_t main_ticks_ = 0;           // when that started
  bool has_outsiders_ = false;             // they stay when the tree is gone
  std::optional<process::Cgroup> cgroup_;  // of the tree, if that has limits
  process::TreeUsage usage_;
  base::TimePoint next_look_ = base::TimePoint::max();  // at what the tree uses
  std::chrono::milliseconds look_pause_;
  std::vector<Reading> streams_;
};

/// What becomes of an order that no keeper can be forked for: the daemon is told, with the errno, that it cannot begin.
void refuse_order(base::Fd listener, int error);

/// The life of a keeper: it takes orders from the daemon that it is met by, one run after the other, and ends when
/// nobody has another for it. For a process with one thread and no children; it makes that a sub-reaper, so nothing a
/// task starts can leave its tree.
void run_keeper(int tasks, base::Fd listener);

}  // namespace duet::task
