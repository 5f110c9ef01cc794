#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "duet/base/clock.h"
#include "duet/base/fd.h"
#include "duet/transport/loop.h"
#include "process/launch.h"
#include "task/contact.h"

namespace duet::task {

/// The argument that makes this program a nursery: `duet-rpc --nursery`. Not for people.
inline constexpr std::string_view nursery_argument = "--nursery";

/// The nursery's main function: forks a keeper for each socket that comes on descriptor 3, until the daemon is gone.
/// Keepers that have a run stay. For a process that has done nothing else yet; returns its exit code.
int run_nursery();

/// Where the daemon gets keepers from: a small process that forks them, which is much faster than to execute each. A
/// keeper that has done its run may be put back, and is given out again soon or else let go.
///
/// The process is started when it is needed and again when it is gone. A keeper that could not be forked, or was killed
/// since, shows in its link, which is closed. For the loop's thread only.
class Nursery final : transport::Loop::Watcher {
 public:
  /// How long one is kept that has no run: less than it waits for an acknowledgement, which may come with its next
  /// order.
  static constexpr std::chrono::milliseconds usual_spare_time{1000};

  /// The descriptors are the caller's: the folder of the tasks, and this program, opened.
  Nursery(transport::Loop& loop, int tasks, int executable, std::chrono::milliseconds spare_time = usual_spare_time);
  Nursery(const Nursery&) = delete;
  Nursery& operator=(const Nursery&) = delete;
  ~Nursery();

  /// Throws process::LaunchError or std::system_error if there can be none.
  KeeperLink take();
  /// `acknowledged` is a run whose keeper has still to hear that the store has its outcome: with its next order is
  /// early enough, and wakes it once.
  void put_back(KeeperLink link, std::optional<RunId> acknowledged = {});
  /// Continues the process if somebody has suspended it; take() does so, too.
  void wake() const;

 private:
  struct Spare {
    KeeperLink link;
    std::optional<RunId> acknowledged;
    base::TimePoint since;
  };

  void on_ready(std::uint32_t events) override;
  void launch();
  void send_waiting();
  static bool tell_acknowledged(const Spare& spare);
  void let_go(const Spare& spare) const;
  void let_go_of_old();

  transport::Loop& loop_;
  int tasks_;
  int executable_;
  std::chrono::milliseconds spare_time_;
  std::optional<process::Child> process_;
  base::Fd socket_;
  std::deque<KeeperLink> waiting_;  // listeners that the process has still to get
  std::vector<Spare> spares_;
  transport::Loop::Watch watch_;  // of the socket
  transport::Loop::Timer timer_;
};

}  // namespace duet::task
