#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "duet/transport/loop.h"
#include "task/sqlite.h"
#include "task/store_files.h"
#include "task/store_tables.h"

namespace duet::task {

/// Something to be written, and who waits for it.
struct Change {
  /// What happened already cannot be refused: it is tried again until it is on disk. What nobody waits for may wait
  /// for others a moment.
  enum class Kind : std::uint8_t { request, fact, patient_fact };

  std::function<void(TaskWriter&)> apply;  ///< on the committer's thread; may be called again if the commit failed
  std::function<void(bool kept)> done;     ///< on the loop's thread; `false` only for a request
  Kind kind = Kind::request;
  std::size_t bytes = 0;  ///< roughly, of memory
};

/// Commits changes, many at a time, on a thread of its own: all those of one turn of the loop, and all that came while
/// the last commit ran, are one transaction and one sync. Patient facts alone make no commit within 4 ms of the last.
///
/// A commit that fails refuses its requests and keeps its facts for the next try, which comes with the next change or
/// after a second. After a failed sync nobody knows what is on disk; then nothing more is committed until all that the
/// write-ahead log holds has been written anew, into the main file, and synced. It also moves the log's content there
/// when it has grown and nobody waits. For the loop's thread only, but for what `apply` does.
class Committer {
 public:
  /// What is wrong with the store: nothing, something that may pass, or the end.
  struct Health {
    std::string problem = {};  ///< empty: it works
    bool lost = false;         ///< its files were removed or replaced: nothing will ever be kept again
    bool operator==(const Health&) const = default;
  };

  Committer(transport::Loop& loop, Database database, const StoreIdentity& identity,
            std::function<void(const Health&)> tell);
  Committer(const Committer&) = delete;
  Committer& operator=(const Committer&) = delete;
  /// Waits for what is queued, facts that cannot be written excepted.
  ~Committer();

  void add(Change change);

  /// Calls once, from the loop, when all that was added is on disk, or refused, or cannot be written.
  void when_settled(std::function<void()> call);

  /// Of changes that are not on disk yet.
  std::size_t waiting_bytes() const { return waiting_bytes_; }
  const Health& health() const { return health_; }

 private:
  using Changes = std::vector<Change>;
  enum class Work : std::uint8_t { changes, nothing, end };

  // On the loop's thread.
  void hand_over();
  void finish(const Changes& changes, bool kept, const Health& health);
  void tell_if_settled();

  // On the committer's own.
  void work();
  Work wait_for_work();
  void commit();
  void write(const Changes& changes);
  void take_failure(int code, const std::string& text);
  void verify();
  void write_marker();
  void report(Changes changes, bool kept);
  void move_log_to_main(int mode);
  void tidy();

  transport::Loop& loop_;
  std::function<void(const Health&)> tell_;
  Changes arrived_;  // in this turn
  std::size_t waiting_ = 0;
  std::size_t waiting_bytes_ = 0;
  Health health_;
  std::vector<std::function<void()>> when_settled_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  std::mutex mutex_;
  std::condition_variable changed_;
  Changes queue_;
  bool in_haste_ = false;  // the queue holds more than patient facts
  bool stopping_ = false;

  Database database_;
  TaskWriter writer_;
  StoreIdentity identity_;
  Changes facts_;  // that the last commit failed to keep
  Health trouble_;
  bool uncertain_ = false;  // a sync has failed
  std::int64_t markers_ = 0;
  int log_pages_ = 0;
  std::chrono::steady_clock::time_point last_commit_;
  std::thread thread_;
};

}  // namespace duet::task
