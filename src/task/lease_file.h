#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "duet/base/fd.h"
#include "task/boot_clock.h"

// How long a worker's leased runs may go on: the file `lease` in the folder of the tasks, which the daemon writes with
// every beat that was answered, and keepers map. So they know when the daemon is gone, hangs, or is cut off.
//
// It is not locked and needs no sequence lock: the daemon writes two places by turns, each with a number and a
// checksum, and the newer good one counts. Who is killed while he writes leaves the other one. It counts in the boot
// that it was made in, and is made anew in the next.

namespace duet::task {

/// What a worker may rely on.
struct LeaseTerm {
  BootTime deadline = {};              ///< sending of the last answered beat + length: then others may run its tasks
  std::chrono::nanoseconds length{0};  ///< of the whole lease

  /// When leased runs are told to end: at two thirds.
  BootTime end() const { return deadline - length / 3; }
  bool operator==(const LeaseTerm&) const = default;
};

/// The daemon's side. What another daemon of this boot has written stays until extend(). One daemon a folder; for one
/// thread.
class Lease {
 public:
  /// Takes the file over or makes it. Throws std::system_error.
  explicit Lease(int tasks);
  /// The same in a certain boot, for tests.
  Lease(int tasks, const std::string& boot);

  /// Also back, as when the lease is made shorter: keepers see that within 4 s. False, with errno, if it cannot be
  /// written: then the runs end with what there was. The space was taken when the file was made.
  bool extend(BootTime deadline, std::chrono::nanoseconds length);

 private:
  base::Fd file_;
  std::uint64_t written_ = 0;  // the number of the last one
};

/// A keeper's side: the file, mapped. Who cuts it short ends the keeper by SIGBUS, and the run with it.
class LeaseView {
 public:
  /// Nothing is opened before it is asked. The descriptor is the caller's.
  explicit LeaseView(int tasks);
  /// The same in a certain boot, for tests.
  LeaseView(int tasks, std::string boot);
  LeaseView(const LeaseView&) = delete;
  LeaseView& operator=(const LeaseView&) = delete;
  ~LeaseView();

  /// What the file says now; none if it is missing, damaged, or of another boot: then the lease is over. A file that
  /// says that all is over by `now` is looked for once more by its name, as somebody may have put another one there.
  std::optional<LeaseTerm> read(BootTime now);

 private:
  void map();
  void unmap();
  std::optional<LeaseTerm> look() const;

  int tasks_;
  std::string boot_;
  const void* page_ = nullptr;
};

}  // namespace duet::task
