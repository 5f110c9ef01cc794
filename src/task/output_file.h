#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "duet/base/fd.h"
#include "task/output_marks.h"
#include "task/run_record.h"

namespace duet::task {

inline constexpr std::uint64_t max_output = std::uint64_t{64} << 20;

/// Where a keeper puts its run's output. For reading see output.h.
///
/// The file is the output, byte for byte, until it has its full size. From then on its second half is a ring that keeps
/// the last bytes. What cannot be written, or marked with its stream, since the disk is full, say, is dropped and
/// leaves a hole; what comes later is tried again. The record says what was dropped: before bytes are overwritten, or
/// written behind a hole, and after the new ones are there, so it is right at any instant. Never fails: what cannot be
/// written is counted.
class OutputFile {
 public:
  /// The record must outlive it. The file is made with the first byte.
  OutputFile(int tasks, RunId run, const RunRecord& record, std::uint64_t limit = max_output);

  void append(std::string_view bytes, Stream stream = Stream::out);
  std::uint64_t total() const { return extent_.total; }

  /// Writes down what was dropped, unless that is written already. 0, or errno.
  int note();
  /// What was appended, onto the disk; nothing happens if it is there. 0, or errno.
  int sync();

 private:
  void append_part(std::string_view bytes, bool is_marked);
  std::size_t write_part(std::string_view bytes);
  bool open_file();

  int tasks_;
  RunId run_;
  const RunRecord& record_;
  base::Fd file_;
  Extent extent_;
  OutputMarks marks_;
  bool is_noted_ = true;   // the record says what the extent says
  bool is_synced_ = true;  // what was written is on the disk
  bool is_named_ = false;  // the folder with the file's name is on the disk
  std::uint64_t sequence_ = 0;
};

}  // namespace duet::task
