#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "duet/base/fd.h"
#include "task/run.h"

namespace duet::task {

/// Where a byte of output comes from. `mixed`: from one of both, nobody knows which.
enum class Stream : std::uint8_t { out, err, mixed };

/// `stdout` or `stderr`; empty if that is not known.
std::string_view name_of(Stream stream);

/// `task-7.1.marks`, beside the output.
std::string marks_name(RunId run);

/// Where a keeper writes down at which offsets its run's output goes over from one stream to the other.
///
/// The file has 8 bytes for each such place, in order: the offset and the stream. It is made with the first byte of
/// stderr: output without it is stdout's. A mark is written before the bytes that it is about, so what is there is
/// marked at any instant; bytes that it cannot be written for must not be put there. Behind `most_marks` the rest is
/// mixed.
class OutputMarks {
 public:
  static constexpr std::size_t most_marks = std::size_t{1} << 18U;

  OutputMarks(int tasks, RunId run, std::size_t most = most_marks) : tasks_(tasks), run_(run), most_(most) {}

  /// What is going to be appended at `offset` comes from `stream`. 0, or errno: nothing was marked.
  int mark(std::uint64_t offset, Stream stream);
  /// 0, or errno.
  int sync();

 private:
  int write(std::uint64_t mark);

  int tasks_;
  RunId run_;
  std::size_t most_;
  base::Fd file_;
  Stream last_ = Stream::out;
  std::size_t written_ = 0;
};

/// Reads those marks, at any time.
class MarkedStreams {
 public:
  /// Throws std::system_error if they cannot be read.
  MarkedStreams(int tasks, RunId run);

  struct Stretch {
    Stream stream = Stream::out;
    std::uint64_t to = 0;  ///< of the first byte that comes from another one
  };
  /// What the byte at this offset belongs to. Of bytes that had been read before this was made it is certain.
  Stretch at(std::uint64_t offset) const;

 private:
  std::uint64_t mark(std::size_t index) const;

  base::Fd file_;
  std::size_t count_ = 0;
};

}  // namespace duet::task
