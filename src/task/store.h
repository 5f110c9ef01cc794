#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/fd.h"
#include "duet/rpc/error.h"
#include "duet/transport/loop.h"
#include "task/committer.h"
#include "task/sqlite.h"
#include "task/store_files.h"
#include "task/store_tables.h"
#include "task/store_vfs.h"
#include "task/task.h"

namespace duet::task {

/// The store cannot be used: a sentence about what is wrong with it, without paths. Its files are as they were.
class StoreError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What would keep the store in `folder` from being opened, as a sentence for people; none if it is whole. For a store
/// that is there and that nobody has open. No task is changed, and nothing is brought up to date. Throws
/// std::system_error if a file cannot be read.
std::optional<std::string> examine_store(int folder);

/// The tasks on disk: `tasks.db` in the daemon's folder, an SQLite database with a write-ahead log, synced with every
/// commit.
///
/// What is read is what is committed. What is changed is committed by another thread, together with all else that
/// changes meanwhile; `done` is called when it is on disk, or with `false` when it could not be written and was
/// refused. Changes of one turn of the loop are kept together or not at all. For the loop's thread only.
class Store {
 public:
  using Done = std::function<void(bool kept)>;
  using Health = Committer::Health;
  using Tell = std::function<void(const Health&)>;

  static constexpr std::size_t most_waiting_bytes = std::size_t{64} << 20;

  /// Opens the store in `folder`, or makes a new one. `tell` hears when its health changes; `folder_holds` tells any
  /// thread whether the folder is where it was. Throws StoreError, or std::system_error.
  Store(transport::Loop& loop, int folder, Tell tell = {}, StoreVfs::Fault fault = {},
        std::function<bool()> folder_holds = {});
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  /// Writes the log's file before the log needs it, if the disk has room in plenty; before the first change. A sync of
  /// bytes that are overwritten is a write of the disk; of bytes that are appended it is a change of the file system,
  /// too.
  void lay_out_log() const;
  /// Waits until what was changed is on disk, if it can be written.
  ~Store();

  /// Calls `use` with the reader and returns what that does. Throws rpc::Error if the store cannot be read.
  template <typename Use>
  auto read(Use use) {
    try {
      return use(*reader_);
    } catch (const SqliteError& error) {
      throw unreadable(error);
    }
  }

  /// A new task, which may be refused.
  void insert(Task task, const Submission& submission, std::string body, Done done);
  /// A decision, which may be refused.
  void decide(TaskId id, const Progress& progress, Done done);
  /// What has happened, and cannot be refused. If nobody waits for it, it may take a few milliseconds longer.
  void note(TaskId id, const Progress& progress, std::optional<std::string> result, bool is_awaited, Done done);
  void erase(std::vector<TaskId> ids, Done done);
  /// A value under a name, for whoever needs to know something after a restart; TaskReader::recall() finds it.
  void remember(std::string name, std::string value, Done done);

  /// Calls when all that was changed before is on disk, or refused.
  void after_changes(std::function<void()> call);

  /// False: so much waits to be written that no new task should be taken.
  bool has_room() const { return committer_->waiting_bytes() < most_waiting_bytes; }
  /// Calls once when nothing waits to be written any more, or cannot be.
  void when_settled(std::function<void()> call) { committer_->when_settled(std::move(call)); }
  const Health& health() const { return committer_->health(); }
  bool is_healthy() const { return health().problem.empty(); }
  /// Whether its files are where they were. A commit looks by itself; this is for whoever hears of it before.
  bool is_in_place() const { return identity_->holds(); }

 private:
  static rpc::Error unreadable(const SqliteError& error);
  void create() const;
  Database open() const;

  base::Fd folder_;
  StoreVfs vfs_;
  std::optional<Database> reading_;
  std::optional<TaskReader> reader_;
  std::optional<StoreIdentity> identity_;
  std::unique_ptr<Committer> committer_;
};

}  // namespace duet::task
