#include "task/output_follower.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include "duet/rpc/utf8.h"
#include "task/task_output.h"

namespace duet::task {
namespace {

constexpr std::size_t piece_bytes = 64 * 1024;

}  // namespace

OutputFollower::OutputFollower(transport::Loop& loop, base::Log& log, int tasks, Gone gone_output, Audience audience)
    : loop_(loop), log_(log), tasks_(tasks), gone_output_(std::move(gone_output)), audience_(std::move(audience)) {}

void OutputFollower::add(Runner& runner, RunId run, bool is_new) {
  Followed& followed = runs_[run];
  followed = {.runner = &runner};  // an earlier try may have begun as little as it ended
  if (audience_.wants(run.task)) follow(run, followed, is_new);
}

void OutputFollower::audience_changed() {
  for (auto& [run, followed] : runs_) {
    if (!followed.following && !followed.gone && audience_.wants(run.task)) follow(run, followed, false);
  }
}

void OutputFollower::follow(RunId run, Followed& followed, bool from_start) {
  followed.following = true;
  followed.from_start = from_start;
  followed.placed = false;
  if (!place(run, followed)) try_again(run, followed);
}

bool OutputFollower::place(RunId run, Followed& followed) {
  const auto gone = gone_before(run, followed);
  if (!gone) return false;
  followed.before = gone->bytes;
  for (RunId earlier{run.task, gone->attempts + 1}; earlier.attempt < run.attempt; ++earlier.attempt) {
    const auto piece = read(earlier, 0, 0, followed);
    if (!piece) return false;
    followed.before += piece->total;
  }
  const auto piece = followed.from_start ? OutputPiece{} : read(run, 0, 0, followed);
  if (!piece) return false;
  followed.told = piece->total;
  followed.placed = true;
  followed.runner->follow(run, followed.told);
  return true;
}

std::optional<GoneOutput> OutputFollower::gone_before(RunId run, Followed& followed) const {
  if (run.attempt == 1) return GoneOutput{};
  if (followed.behind) return followed.behind;
  const auto gone = gone_output_(run);
  if (!gone) followed.unreadable = true;
  return gone;
}

void OutputFollower::place_behind(RunId run, const GoneOutput& gone) {
  const auto found = runs_.find(run);
  if (found == runs_.end()) return;
  Followed& followed = found->second;
  followed.behind = gone;
  if (!followed.following || followed.placed) return;
  followed.unreadable = false;
  if (!place(run, followed)) return try_again(run, followed);
  if (followed.began && (followed.has_more || followed.gone)) tell_some_later(run);
}

void OutputFollower::began(TaskId id) {
  const auto behind = runs_.lower_bound({id + 1, 0});
  if (behind == runs_.begin() || std::prev(behind)->first.task != id) return;
  began(RunId(std::prev(behind)->first));
}

void OutputFollower::began(RunId run) {
  std::vector<RunId> runs;
  for (auto at = runs_.lower_bound({run.task, 0}); at != runs_.end() && !(run < at->first); ++at) {
    if (!std::exchange(at->second.began, true)) runs.push_back(at->first);
  }
  for (const RunId each : runs) {
    const auto found = runs_.find(each);
    if (found == runs_.end() || !found->second.following) continue;
    if (found->second.has_more || found->second.gone) tell_some(each);
  }
}

std::vector<RunId> OutputFollower::not_begun() const {
  std::vector<RunId> runs;
  for (const auto& [run, followed] : runs_) {
    if (followed.following && !followed.began) runs.push_back(run);
  }
  return runs;
}

void OutputFollower::more(RunId run) {
  const auto found = runs_.find(run);
  if (found == runs_.end() || !found->second.following) return;
  found->second.has_more = true;
  if (found->second.began) tell_some(run);
}

void OutputFollower::gone(RunId run) {
  const auto found = runs_.find(run);
  if (found == runs_.end()) return;
  found->second.gone = true;
  if (found->second.following) {
    if (found->second.began) tell_some(run);
  } else {
    forget(run);
  }
}

void OutputFollower::drop(RunId run) {
  if (runs_.contains(run)) forget(run);
}

bool OutputFollower::follows(RunId run) const {
  const auto found = runs_.find(run);
  return found != runs_.end() && found->second.following;
}

bool OutputFollower::is_telling(TaskId id) const {
  const auto first = runs_.lower_bound({id, 0});
  const auto behind = runs_.lower_bound({id + 1, 0});
  return std::any_of(first, behind, [](const auto& each) { return each.second.following; });
}

// Until all that the attempt before has written is told.
bool OutputFollower::must_wait(RunId run) const {
  const auto at = runs_.find(run);
  return at != runs_.begin() && std::prev(at)->first.task == run.task && std::prev(at)->second.began;
}

// The next attempt may have waited for that.
void OutputFollower::forget(RunId run) {
  const auto next = runs_.erase(runs_.find(run));
  if (next == runs_.end() || next->first.task != run.task) return;
  const Followed& followed = next->second;
  if (followed.following && followed.began && (followed.has_more || followed.gone)) tell_some_later(next->first);
}

void OutputFollower::tell_some_later(RunId run) {
  loop_.defer(lifetime_.bind([this, run] { tell_some(run); }));
}

void OutputFollower::tell_some(RunId run) {
  const auto found = runs_.find(run);
  if (found == runs_.end()) return;
  Followed& followed = found->second;
  followed.has_more = true;
  if (must_wait(run)) return;
  followed.has_more = false;
  const bool is_placed = followed.placed || place(run, followed);
  const auto read_now = is_placed ? read(run, followed.told, piece_bytes, followed) : std::nullopt;
  if (!read_now) return try_again(run, followed);
  const OutputPiece& piece = *read_now;
  const Stream stream = followed.stream;
  const bool is_rest = followed.gone && piece.next >= piece.total;
  // A gap may cut a character: then nothing of it comes later.
  const std::size_t whole = rpc::whole_characters(piece.bytes).size();
  const bool is_cut = whole == 0 && piece.next < piece.total;
  const std::size_t size = is_rest || is_cut ? piece.bytes.size() : whole;
  const std::uint64_t from = std::max(piece.offset, followed.told);  // the task may be erased, and its output with it
  const std::uint64_t at = followed.before + from;
  followed.told = from + size;
  const bool wanted = audience_.wants(run.task);
  const bool is_over = followed.gone && (is_rest || !wanted);

  if (is_rest || !wanted) {
    followed.following = false;
    if (is_over) forget(run);
  } else if (followed.gone) {
    tell_some_later(run);
  } else {
    followed.runner->follow(run, piece.next);  // not `told`: a character that never ends would be told for ever
  }

  if (wanted && size > 0) audience_.tell(run.task, at, stream, std::string_view(piece.bytes).substr(0, size));
  if (wanted && is_rest) audience_.tell(run.task, at + size, Stream::mixed, {});
  if (is_over) audience_.done();
}

// The keeper is not asked for more meanwhile.
void OutputFollower::try_again(RunId run, Followed& followed) {
  if (followed.retry) return;
  followed.retry = loop_.after(std::chrono::seconds(1), [this, run] {
    Followed& again = runs_.at(run);
    if (!again.following || !again.unreadable) return;
    if (again.began && audience_.wants(run.task)) return tell_some(run);
    if (audience_.wants(run.task)) return follow(run, again, again.from_start);
    again.following = false;
    if (!again.gone) return;
    forget(run);
    audience_.done();
  });
}

// What comes from another one is read next.
Stream OutputFollower::cut_to_stream(RunId run, OutputPiece& piece) const {
  if (piece.bytes.empty()) return Stream::out;
  const MarkedStreams::Stretch stretch = MarkedStreams(tasks_, run).at(piece.offset);
  if (piece.next > stretch.to) {
    piece.next = stretch.to;
    piece.bytes.resize(static_cast<std::size_t>(stretch.to - piece.offset));
  }
  return stretch.stream;
}

std::optional<OutputPiece> OutputFollower::read(RunId run, std::uint64_t offset, std::size_t limit,
                                                Followed& followed) {
  try {
    OutputPiece piece = read_output(tasks_, run, offset, limit);
    followed.stream = cut_to_stream(run, piece);
    followed.unreadable = false;
    return piece;
  } catch (const std::system_error& error) {
    if (!std::exchange(followed.unreadable, true)) {
      log_.warn("output of a task cannot be read", {{"task", to_text(run.task)}, {"reason", error.code().message()}});
    }
    return std::nullopt;
  }
}

}  // namespace duet::task
