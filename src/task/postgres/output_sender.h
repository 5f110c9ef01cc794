#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "duet/base/clock.h"
#include "task/run_record.h"

namespace duet::task::postgres {

/// How much may be sent: a rate, with as much saved up as ten seconds of it are. Pure.
class OutputBudget {
 public:
  explicit OutputBudget(std::uint64_t bytes_a_second = std::uint64_t{1} << 20U)
      : rate_(static_cast<std::int64_t>(bytes_a_second)), left_(10 * rate_) {}

  /// Not above 0: what was spent too much has to be saved up first.
  std::int64_t left(base::TimePoint now);
  void spend(std::uint64_t bytes) { left_ -= static_cast<std::int64_t>(bytes); }

 private:
  std::int64_t rate_;
  std::int64_t left_;
  base::TimePoint at_ = {};
};

/// Which of an attempt's output goes to the database: the first and the last half of a bound. What is between is told
/// as dropped. Reads the output from the keeper's file, and knows what has arrived. One for each attempt.
class OutputSender {
 public:
  static constexpr std::size_t largest_piece = std::size_t{64} << 10U;

  struct Piece {
    std::uint64_t offset = 0;
    std::string bytes = {};
    std::string marks = {};  ///< where streams begin: `0o12e40o`, offsets inside the piece; empty: all is stdout
  };
  /// What is sent at once, and what is said of the whole.
  struct Portion {
    std::vector<Piece> pieces = {};
    std::uint64_t total = 0;
    std::vector<OutputRange> dropped = {};
    bool last = false;
    bool is_empty() const { return pieces.empty() && !last; }
    /// Of all pieces, in bytes.
    std::uint64_t size() const;
  };

  /// `tasks` is the folder with the output files; `bound` what the database keeps of an attempt.
  OutputSender(int tasks, RunId run, std::uint64_t bound) : tasks_(tasks), run_(run), bound_(bound) {}

  /// What is to be sent next, of at most so many bytes; `is_last`: the attempt has ended, and all that is to come
  /// comes now, whatever it takes. Throws std::system_error if the file cannot be read.
  Portion next(std::uint64_t most, bool is_last);
  /// The last one, if the file cannot be read: all that has not arrived is told as dropped, up to `total`.
  Portion unreadable(std::uint64_t total);
  /// The last portion has arrived; without this the next one begins where that did.
  void arrived() { sent_ = asked_; }
  /// The database has it so far and no further, whatever has arrived before: another server has taken over. What is no
  /// longer in the file by then is told as dropped.
  void go_back_to(std::uint64_t offset) {
    furthest_ = std::max(furthest_, sent_);
    sent_ = std::min(sent_, offset);
  }
  /// How much the last portion would have. Throws std::system_error if the file cannot be read.
  std::uint64_t left() const;

 private:
  std::uint64_t head() const { return bound_ / 2; }
  std::uint64_t tail() const { return bound_ - head(); }

  int tasks_;
  RunId run_;
  std::uint64_t bound_;
  std::uint64_t sent_ = 0;                 // or dropped
  std::uint64_t asked_ = 0;                // on its way
  std::uint64_t furthest_ = 0;             // sent to a server before
  std::vector<OutputRange> dropped_ = {};  // as it was told last
};

/// The streams of bytes from `offset` on, as the marks of a piece have them.
std::string marks_of(int tasks, RunId run, std::uint64_t offset, std::size_t size);

}  // namespace duet::task::postgres
