#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "duet/base/lifetime.h"
#include "duet/base/log.h"
#include "duet/transport/loop.h"
#include "task/output.h"
#include "task/runner.h"
#include "task/task.h"

namespace duet::task {

/// Tells new output of running tasks as it comes, if somebody wants that of a task: as text that ends with a whole
/// character, in pieces of one stream and at most 64 KiB, one a turn. What is written before somebody wants it is not
/// told. After the last piece comes an empty one. What cannot be read now is tried again each second, as long as
/// somebody wants it. For the loop's thread only.
class OutputFollower {
 public:
  struct Audience {
    std::function<bool(TaskId)> wants;
    std::function<void(TaskId, std::uint64_t offset, Stream stream, std::string_view text)> tell;
    /// A run that is gone is not told any more: all of it was, or nobody wants it.
    std::function<void()> done = [] {};
  };

  /// What is not here of a task's output before this attempt; none if that cannot be known now.
  using Gone = std::function<std::optional<GoneOutput>(RunId)>;

  /// `tasks` is the folder with the output files.
  OutputFollower(transport::Loop& loop, base::Log& log, int tasks, Gone gone_output, Audience audience);
  OutputFollower(const OutputFollower&) = delete;
  OutputFollower& operator=(const OutputFollower&) = delete;

  /// A run was started by `runner`, or adopted, with or without output so far.
  void add(Runner& runner, RunId run, bool is_new);
  /// Everybody has been told that the task runs; its output comes after that.
  void began(TaskId id);
  /// The same of this run and those before it.
  void began(RunId run);
  /// Runs whose output somebody wants, and that nobody was told of.
  std::vector<RunId> not_begun() const;
  /// What was not known at once of a run that is followed.
  void place_behind(RunId run, const GoneOutput& gone);
  /// Somebody may want what nobody wanted before.
  void audience_changed();
  /// Not all that it has written is told yet: its output must not go.
  bool is_telling(TaskId id) const;
  /// The same of one of its runs.
  bool follows(RunId run) const;
  /// There is more, as Runner::follow() was asked to say.
  void more(RunId run);
  /// No more output will come.
  void gone(RunId run);
  /// Nobody will be told that the task runs, or what this run still writes.
  void drop(RunId run);

 private:
  struct Followed {
    Runner* runner;
    std::uint64_t before = 0;  // what earlier attempts wrote
    std::uint64_t told = 0;    // of this one
    bool following = false;
    bool from_start = false;
    bool placed = false;          // `before` and `told` are known
    bool unreadable = false;      // which was logged
    Stream stream = Stream::out;  // of what was read last
    bool began = false;           // and all know it
    bool has_more = false;        // than was told
    bool gone = false;
    std::optional<GoneOutput> behind = {};  // what is not here of the attempts before
    transport::Loop::Timer retry = {};      // while it is unreadable
  };

  void follow(RunId run, Followed& followed, bool from_start);
  bool place(RunId run, Followed& followed);
  std::optional<GoneOutput> gone_before(RunId run, Followed& followed) const;
  void tell_some(RunId run);
  void tell_some_later(RunId run);
  bool must_wait(RunId run) const;
  void forget(RunId run);
  std::optional<OutputPiece> read(RunId run, std::uint64_t offset, std::size_t limit, Followed& followed);
  Stream cut_to_stream(RunId run, OutputPiece& piece) const;
  void try_again(RunId run, Followed& followed);

  transport::Loop& loop_;
  base::Log& log_;
  int tasks_;
  Gone gone_output_;
  Audience audience_;
  std::map<RunId, Followed> runs_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task
