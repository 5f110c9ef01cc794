#include "simulate/output_truth.h"

namespace duet::simulate {

using task::OutputPiece;
using task::RunId;

void OutputTruth::took(RunId run, std::string_view bytes, bool troubled, task::Stream stream) {
  Written& written = runs_[run];
  written.bytes += bytes;
  written.streams.resize(written.bytes.size(), stream);
  written.troubled = written.troubled || troubled;
}

void OutputTruth::power_cut(RunId run, bool told) {
  Written& written = runs_[run];
  if (!told || written.unsynced || written.unkept) written.open = true;
}

const OutputTruth::Written& OutputTruth::find(RunId run) const {
  static const Written nothing;
  const auto found = runs_.find(run);
  return found == runs_.end() ? nothing : found->second;
}

std::string OutputTruth::written(RunId run, task::Stream stream) const {
  const Written& written = find(run);
  std::string bytes;
  for (std::size_t i = 0; i < written.bytes.size(); ++i) {
    if (written.streams[i] == stream) bytes += written.bytes[i];
  }
  return bytes;
}

bool OutputTruth::is_exact(task::TaskId id) const {
  for (auto run = runs_.lower_bound({id, 0}); run != runs_.end() && run->first.task == id; ++run) {
    if (!run->second.is_exact()) return false;
  }
  return true;
}

std::optional<std::uint64_t> OutputTruth::total(task::TaskId id) const {
  std::uint64_t total = 0;
  for (auto run = runs_.lower_bound({id, 0}); run != runs_.end() && run->first.task == id; ++run) {
    if (!run->second.is_exact() || run->second.unkept) return std::nullopt;
    total += run->second.bytes.size();
  }
  return total;
}

bool OutputTruth::is_end(task::TaskId id, std::uint64_t offset) const {
  if (!is_exact(id)) return true;
  std::uint64_t written = 0;
  for (auto run = runs_.lower_bound({id, 0}); run != runs_.end() && run->first.task == id; ++run) {
    written += run->second.bytes.size();
    if (written == offset) return true;
  }
  return offset == 0;
}

// Where a run's output is not known exactly, the places of the next one's are not either.
std::optional<std::string> OutputTruth::check(task::TaskId id, std::uint32_t attempts, const OutputPiece& piece,
                                              bool done) const {
  std::string truth;
  bool exact = true;
  for (RunId run{id, 1}; run.attempt <= attempts; ++run.attempt) {
    const Written& written = find(run);
    if (!exact || !written.is_known()) return std::nullopt;
    exact = written.is_exact();
    truth += written.bytes;
  }
  return compare(truth, piece, done, exact);
}

std::optional<std::string> OutputTruth::check_run(RunId run, const RunOutput& output) const {
  const Written& written = find(run);
  if (!written.is_known()) return std::nullopt;
  const bool is_marked = !written.is_exact() || output.err.bytes == this->written(run, task::Stream::err);
  if (!is_marked) return "other output is said to come from stderr than does";
  return compare(written.bytes, output.both, true, written.is_exact());
}

std::optional<std::string> OutputTruth::compare(std::string_view truth, const OutputPiece& piece, bool whole,
                                                bool exact) {
  if (piece.total > truth.size()) {
    return std::to_string(piece.total) + " bytes of output, but only " + std::to_string(truth.size()) + " were written";
  }
  if (piece.offset > piece.total || truth.substr(piece.offset, piece.bytes.size()) != piece.bytes) {
    return "other output than was written, at " + std::to_string(piece.offset);
  }
  if (!exact) return std::nullopt;
  if (piece.dropped) return "output is said to be dropped, but the disk took all of it";
  if (whole && piece.total != truth.size()) {
    return std::to_string(piece.total) + " bytes of output, but " + std::to_string(truth.size()) + " were written";
  }
  return std::nullopt;
}

}  // namespace duet::simulate
