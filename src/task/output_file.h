#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "duet/base/fd.h"
#include "task/run_record.h"

namespace duet::task {

inline constexpr std::uint64_t max_output = std::uint64_t{64} << 20;

/// Where a keeper puts its run's output. For reading see output.h.
///
/// The file is the output, byte for byte, until it has its full size, or the disk has no room for more. From then on
/// its second half is a ring that keeps the last bytes, and the record says which. The record is written before bytes
/// are overwritten and after the new ones are there, so it is right at any instant. Never fails: what cannot be written
/// is counted as dropped.
class OutputFile {
 public:
  /// The record must outlive it. The file is made with the first byte.
  OutputFile(int tasks, RunId run, const RunRecord& record, std::uint64_t limit = max_output);

  void append(std::string_view bytes);
  std::uint64_t total() const { return total_; }

 private:
  std::size_t append_in_order(std::string_view bytes);
  void append_to_ring(std::string_view bytes);
  bool write_ring(std::uint64_t offset, std::string_view bytes);
  bool note(std::uint64_t tail, std::uint64_t total);

  int tasks_;
  RunId run_;
  const RunRecord& record_;
  base::Fd file_;
  std::uint64_t total_ = 0;
  std::uint64_t capacity_;
  bool wrapped_ = false;
  std::uint64_t tail_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace duet::task
