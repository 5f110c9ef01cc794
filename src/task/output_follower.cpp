#include "task/output_follower.h"

#include <iterator>
#include <system_error>
#include <utility>

#include "duet/rpc/utf8.h"
#include "task/task_output.h"

namespace duet::task {
namespace {

constexpr std::size_t piece_bytes = 64 * 1024;

}  // namespace

OutputFollower::OutputFollower(transport::Loop& loop, base::Log& log, int tasks, Audience audience)
    : loop_(loop), log_(log), tasks_(tasks), audience_(std::move(audience)) {}

OutputFollower::~OutputFollower() { *alive_ = false; }

void OutputFollower::add(Runner& runner, RunId run, bool is_new) {
  Followed& followed = runs_[run];
  followed.runner = &runner;
  if (audience_.wants(run.task)) follow(run, followed, is_new);
}

void OutputFollower::audience_changed() {
  for (auto& [run, followed] : runs_) {
    if (!followed.following && !followed.gone && audience_.wants(run.task)) follow(run, followed, false);
  }
}

void OutputFollower::follow(RunId run, Followed& followed, bool from_start) {
  followed.before = 0;
  for (RunId earlier{run.task, 1}; earlier.attempt < run.attempt; ++earlier.attempt) {
    followed.before += read(earlier, 0, 0).total;
  }
  followed.told = from_start ? 0 : read(run, 0, 0).total;
  followed.following = true;
  followed.runner->follow(run, followed.told);
}

void OutputFollower::began(TaskId id) {
  const auto behind = runs_.lower_bound({id + 1, 0});
  if (behind == runs_.begin() || std::prev(behind)->first.task != id) return;
  auto& [run, followed] = *std::prev(behind);
  if (std::exchange(followed.began, true) || !followed.following) return;
  if (followed.has_more || followed.gone) tell_some(RunId(run));
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
    runs_.erase(found);
  }
}

void OutputFollower::tell_some(RunId run) {
  const auto found = runs_.find(run);
  if (found == runs_.end()) return;
  Followed& followed = found->second;
  followed.has_more = false;
  const OutputPiece piece = read(run, followed.told, piece_bytes);
  const bool is_rest = followed.gone && piece.next >= piece.total;
  const std::size_t size = is_rest ? piece.bytes.size() : rpc::whole_characters(piece.bytes).size();
  const std::uint64_t at = followed.before + piece.offset;
  followed.told = piece.offset + size;
  const bool wanted = audience_.wants(run.task);

  if (is_rest || !wanted) {
    followed.following = false;
    if (followed.gone) runs_.erase(found);
  } else if (followed.gone) {
    loop_.defer([this, run, alive = alive_] {
      if (*alive) tell_some(run);
    });
  } else {
    followed.runner->follow(run, piece.next);  // not `told`: a character that never ends would be told for ever
  }

  if (!wanted) return;
  if (size > 0) audience_.tell(run.task, at, std::string_view(piece.bytes).substr(0, size));
  if (is_rest) audience_.tell(run.task, at + size, {});
}

OutputPiece OutputFollower::read(RunId run, std::uint64_t offset, std::size_t limit) {
  try {
    return read_output(tasks_, run, offset, limit);
  } catch (const std::system_error& error) {
    log_.warn("output of a task cannot be read", {{"task", to_text(run.task)}, {"reason", error.code().message()}});
    return {.offset = offset, .next = offset, .total = offset};
  }
}

}  // namespace duet::task
