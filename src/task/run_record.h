#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "duet/base/fd.h"
#include "task/run.h"

namespace duet::task {

/// Names in the folder of the tasks: `task-7.1`, `task-7.1.out`, and `keeper-….sock` for where a keeper can be met.
std::string record_name(RunId run);
std::string output_name(RunId run);
std::string new_contact_name();
bool is_contact_name(std::string_view name);
/// The run whose record has this name, if it is one.
std::optional<RunId> run_of_record(std::string_view name);

/// 32 hexadecimal digits that nobody else has.
std::string random_mark();

/// How the processes of a run are told from all others: by a random number in their environment, and the main process
/// also by its pid and start.
struct Fingerprint {
  std::string mark = {};
  std::string boot = {};         ///< which boot of the machine the rest belongs to
  pid_t main = 0;                ///< 0: not known
  std::uint64_t main_ticks = 0;  ///< when that started, as /proc counts it
  pid_t keeper = 0;              ///< 0: not known, as with keepers of version 0.1
  std::string cgroup = {};       ///< its folder, if the run has one of its own
};

/// Bytes `from` up to, but without, `to` of a run's output.
struct OutputRange {
  std::uint64_t from = 0;
  std::uint64_t to = 0;

  bool operator==(const OutputRange&) const = default;
};

/// Which of a run's output is in its file. Without one the file holds all of it, in order.
struct Extent {
  static constexpr std::size_t max_gaps = 24;

  std::uint64_t capacity = 0;          ///< the most that the file may hold: a head of one half, and a ring for the tail
  std::uint64_t total = 0;             ///< offset behind the last byte
  std::vector<OutputRange> gaps = {};  ///< what was dropped, in order; they do not touch

  std::uint64_t head() const { return capacity / 2; }
  std::uint64_t ring() const { return capacity - head(); }
  /// Where in the file a byte is: at its offset, as long as all fits.
  std::uint64_t position(std::uint64_t offset) const {
    return offset < head() ? offset : head() + (offset - head()) % ring();
  }
  /// Counts these as dropped. If there are too many gaps, what lies between the nearest two is dropped as well.
  void drop(OutputRange range);
};

/// The file in which a keeper writes down what happens to its run, so that others can read it at any time.
///
/// The daemon makes it, locked; who holds that description holds the lock, and only such a holder can begin the run. So
/// whoever gets the lock later knows that nobody else is going to write or to begin. It consists of blocks that are
/// written once (the extent: in two places by turns), each with a checksum; a block that is torn counts as not written.
/// Its space is taken when it is made: writing needs no room on the disk, but for the result, which follows them.
/// Keepers and daemons of different versions meet in it, so blocks keep their place and layout.
class RunRecord {
 public:
  RunRecord() = default;
  explicit RunRecord(base::Fd fd) : fd_(std::move(fd)) {}

  /// A new one, locked, for the keeper that is met at `contact`. Throws std::system_error, with EEXIST if there is one.
  static RunRecord create(int tasks, RunId run, const std::string& contact);
  /// The one that is there, not locked; empty if there is none.
  static RunRecord open(int tasks, RunId run);
  /// The same for whoever only reads, which a disk that cannot be written allows. Empty with errno.
  static RunRecord open_to_read(int tasks, RunId run);

  explicit operator bool() const { return static_cast<bool>(fd_); }
  int get() const { return fd_.get(); }
  /// False if somebody else has it.
  bool lock() const;

  bool write_began(RunId run, const Fingerprint& fingerprint, const std::optional<Claim>& claim = {}) const;
  bool write_started(const Started& started, std::uint64_t ticks) const;
  /// False, with errno, also if only the result could not be written: then the outcome stands there without it.
  bool write_outcome(const Outcome& outcome) const;
  bool write_gone() const;
  bool write_extent(const Extent& extent, std::uint64_t sequence) const;
  /// Onto the disk, with the folder it is in. False, with errno, if that failed.
  bool sync(int tasks) const;

  struct State {
    bool began = false;
    bool gone = false;
    bool has_extent = false;  ///< the output cannot be read without it
    std::string contact = {};
    Fingerprint fingerprint = {};
    std::optional<Claim> claim = {};  ///< of a run that began; only in a queue that many machines share
    std::optional<Started> started = {};
    std::optional<Outcome> outcome = {};  ///< without its result
  };
  /// The error is an errno.
  tl::expected<State, int> try_read() const;
  /// The same; what cannot be read counts as not written.
  State read() const { return try_read().value_or(State{}); }
  std::optional<Extent> read_extent() const;
  /// What belongs to the outcome. The error is an errno: ENODATA if the result is damaged, or could not be written yet.
  tl::expected<std::string, int> try_read_result() const;
  std::string read_result() const { return try_read_result().value_or(std::string()); }

 private:
  base::Fd fd_;
};

/// What is in the folder, and every run that has a record there. All three throw std::system_error if it cannot be
/// read.
std::vector<std::string> names_in(int tasks);
std::vector<RunId> recorded_runs(int tasks);
/// Every run whose output is there.
std::vector<RunId> recorded_outputs(int tasks);

}  // namespace duet::task
