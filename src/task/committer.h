#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "duet/base/lifetime.h"
#include "duet/transport/loop.h"
#include "task/commit_thread.h"
#include "task/sqlite.h"
#include "task/store_tables.h"

namespace duet::task {

/// Something to be written, and who waits for it.
struct Change {
  /// What happened already cannot be refused: it is tried again until it is on disk. What nobody waits for may wait
  /// for others a moment.
  enum class Kind : std::uint8_t { request, fact, patient_fact };

  std::function<void(StoreWriter&)> apply = {};  ///< on any thread; may be called again if the commit failed
  std::function<void(bool kept)> done = {};      ///< on the loop's thread; `false` only for a request
  Kind kind = Kind::request;
  std::size_t bytes = 512;  ///< roughly, of memory
};

/// Commits changes, many at a time: all those of one turn of the loop, and all that came while the last commit ran, are
/// one transaction and one sync. Patient facts alone make no commit within 4 ms of the last.
///
/// While the disk is quick it commits a few changes on the loop's thread at the end of a turn, which saves two changes
/// of threads. Many changes, those that nobody waits for, and all of them while commits fail, usually wait longer
/// than half a millisecond or find the store locked by another program are left to a thread of its own.
///
/// A commit that fails refuses its requests and keeps its facts for the next try, which comes with the next change or
/// after a second. After a failed sync nobody knows what is on disk; then nothing more is committed until all that the
/// write-ahead log holds has been written anew, into the main file, and synced. It also moves the log's content there
/// when it has grown and nobody waits.
/// For the loop's thread only, but for what `apply` does.
class Committer {
 public:
  /// What is wrong with the store: nothing, something that may pass, or the end.
  struct Health {
    std::string problem = {};  ///< empty: it works
    bool lost = false;         ///< its files were removed or replaced: nothing will ever be kept again
    bool operator==(const Health&) const = default;
  };
  struct Options {
    bool may_use_thread = true;                                    ///< else all is done on the loop's
    base::Duration patience = std::chrono::milliseconds(4);        ///< of facts that nobody waits for
    base::Duration quick_commit = std::chrono::microseconds(500);  ///< waits no longer for the disk
    std::size_t few_bytes = std::size_t{48} << 10;                 ///< of changes; more are left to it, too
  };
  /// What it tells, from the loop. A batch's changes are done first; then its events are published, in order; then its
  /// health is told, if it has changed.
  struct Reports {
    std::function<void(const Health&)> health = {};
    std::function<void(std::vector<Event>)> events = {};
  };

  /// `holds` tells any thread whether the files are where they were.
  Committer(transport::Loop& loop, Database database, std::function<bool()> holds, Reports reports, Options options);
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;
  /// Writes what is queued, facts that cannot be written excepted.
  ~Committer();

  void add(Change change);

  /// Calls once, from the loop, when all that was added is on disk, or refused, or cannot be written.
  void when_idle(std::function<void()> call);

  /// Of changes that are not on disk yet.
  std::size_t waiting_bytes() const { return waiting_bytes_; }
  const Health& health() const { return health_; }

 private:
  using Changes = std::vector<Change>;
  /// What came of a commit.
  struct Batch {
    Changes done = {};  // or refused
    bool kept = false;
    std::vector<Event> events = {};
    Health health = {};
    base::Duration waited = {};  // for the disk
  };

  // On the loop's thread.
  void look_soon();
  void look();
  void look_at(base::TimePoint time);
  bool begin_at_once();
  void start(std::function<Batch()> work, bool is_quick);
  bool has_thread();
  void finish(const Batch& batch);
  void tell_if_idle();

  // On the thread that commits, which is one at a time.
  Batch commit(Changes changes);
  Batch tidy();
  void write(const Changes& changes);
  void wait_for(const std::function<void()>& work);
  void take_failure(int code, const std::string& text);
  void verify();
  void write_marker();
  void move_log_to_main(int mode);

  transport::Loop& loop_;
  std::function<bool()> holds_;
  Reports reports_;
  Options options_;
  Changes queue_;
  bool is_urgent_ = false;  // the queue holds more than patient facts
  bool busy_ = false;       // the thread commits
  std::size_t waiting_ = 0;
  std::size_t waiting_bytes_ = 0;
  Health health_;
  base::TimePoint last_commit_ = {};
  base::Duration usual_time_ = {};  // that a commit waits for the disk
  transport::Loop::Timer timer_;
  transport::Loop::Deferred look_;
  std::vector<std::function<void()>> when_idle_;

  Database database_;
  StoreWriter writer_;
  Statement begin_;
  Statement commit_;
  Changes facts_;  // that the last commit failed to keep
  Health trouble_;
  bool uncertain_ = false;  // a sync has failed, or something else of the disk
  std::int64_t markers_ = 0;
  int log_pages_ = 0;
  base::Duration waited_ = {};  // of this commit, for the disk
  std::optional<CommitThread> thread_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task
