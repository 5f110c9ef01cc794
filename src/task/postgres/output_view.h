#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include "task/postgres/result.h"
#include "task/queue.h"

namespace duet::task::postgres {

/// A task's output as the database has it: the pieces of its attempts, one behind the other. Pure.
class OutputView {
 public:
  /// What `read_output_state_v1` gave.
  explicit OutputView(const boost::json::object& state);

  std::uint64_t total() const { return total_; }
  /// Where that attempt begins, which is the last one or has told something.
  std::uint64_t begin_of(std::uint32_t attempt) const;
  /// Where those behind that attempt begin.
  std::uint64_t end_of(std::uint32_t attempt) const;
  /// Where the first byte is that is there, at this offset or behind it.
  std::uint64_t start(std::uint64_t offset) const;
  /// Of rows of `read_output_v1` for that start.
  Queue::Output read(const Result& rows, std::uint64_t offset, std::size_t limit, std::optional<Stream> stream) const {
    return read(rows, {0, rows.rows()}, offset, limit, stream);
  }
  /// The same of some of the rows, from the first to before the second.
  Queue::Output read(const Result& rows, std::pair<std::size_t, std::size_t> range, std::uint64_t offset,
                     std::size_t limit, std::optional<Stream> stream) const;

 private:
  struct Attempt {
    std::uint32_t number = 0;
    std::uint64_t begin = 0;  // in the whole
    std::uint64_t total = 0;
    std::vector<OutputRange> dropped = {};  // in the whole
  };

  std::optional<OutputRange> gap_at(std::uint64_t offset) const;
  std::uint64_t end_of_lost(std::uint64_t offset) const;
  bool begins_at(std::uint64_t offset) const;

  std::vector<Attempt> attempts_;
  std::uint64_t total_ = 0;
  bool is_over_ = false;
};

}  // namespace duet::task::postgres
