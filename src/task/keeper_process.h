#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "duet/base/clock.h"
#include "duet/base/fd.h"
#include "task/contact.h"
#include "task/order.h"
#include "task/output_file.h"
#include "task/run_record.h"

namespace duet::task {

/// A keeper at work on one run: starts its main process, puts its output away, watches the time limit, ends the whole
/// tree, writes everything down, and tells the daemon if there is one.
///
/// It is made for a process of its own: see run_keeper(). It does not know the store, and does not need the daemon.
class KeeperProcess {
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

  /// Until the tree is gone and the outcome is safe. False if it is the keeper's last run.
  bool run();

 private:
  using Milliseconds = std::chrono::milliseconds;

  // Its write end is held as well: a pipe without writers would wake the keeper for nothing, since what counts is the
  // end of the processes.
  struct Stream {
    base::Pipe pipe;
    bool is_result = false;
  };

  void start();
  bool is_finished() const;
  int timeout() const;
  void wait();
  void meet_deadlines();
  void read_stream(const Stream& stream, std::size_t limit);
  void drain();
  void hear_contact();
  void take_contact();
  void tell(Message::Kind kind, std::uint64_t value = 0);
  void tell_output();
  void reap();
  void main_ended(int status);
  void finish(const Outcome& outcome);
  void terminate();
  void tree_gone();
  void make_durable();

  Order order_;
  base::Fd input_;
  Place& place_;
  RunRecord record_;
  OutputFile output_;
  std::vector<Stream> streams_;
  std::string result_;
  std::optional<Started> started_;
  std::optional<std::uint64_t> followed_;
  std::optional<base::TimePoint> limit_at_;
  std::optional<base::TimePoint> kill_at_;
  std::optional<base::TimePoint> leave_at_;  // set: the tree is gone
  Milliseconds kill_again_{10};
  bool killing_ = false;
  bool timed_out_ = false;
  bool ended_ = false;
  bool settled_ = false;  // the store has the outcome
  bool durable_ = false;  // the disk has the record
};

/// The life of a keeper: it takes orders from the daemon that it is met by, one run after the other, and ends when
/// nobody has another for it. For a process with one thread and no children; it makes that a sub-reaper, so nothing a
/// task starts can leave its tree.
void run_keeper(int tasks, base::Fd listener);

}  // namespace duet::task
