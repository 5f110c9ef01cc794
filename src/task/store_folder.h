#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "duet/base/fd.h"
#include "task/store_files.h"
#include "task/store_place.h"
#include "task/store_vfs.h"

namespace duet::task {

/// The store cannot be used: a sentence about what is wrong with it, without paths. No task or event is lost by that;
/// one that is damaged or of a newer version is as it was.
class StoreError : public std::runtime_error {
 public:
  explicit StoreError(const std::string& text, bool no_room = false)
      : std::runtime_error(text), for_want_of_room_(no_room) {}
  bool is_for_want_of_room() const { return for_want_of_room_; }  ///< on the disk; the store is whole

 private:
  bool for_want_of_room_;
};

/// What would keep the store in `folder` from being opened, as a sentence for people; none if it is whole. For a store
/// that is there and that nobody has open. No task is changed, and nothing is brought up to date. Throws
/// std::system_error if a file cannot be read.
std::optional<std::string> examine_store(int folder);

/// How many tasks of such a store have not ended, as far as it tells.
std::int64_t count_unfinished(int folder);
/// Why a daemon with a shared queue does not start beside so many, for people.
std::string unfinished_text(std::int64_t count);

/// A store's files in the daemon's folder: `tasks.db`, an SQLite database with a write-ahead log. Makes a new one if
/// there is none, brings one of an earlier version up to date, and refuses one that is damaged.
class StoreFolder final : public StorePlace {
 public:
  struct Options {
    StoreVfs::Fault fault = {};               ///< for tests
    std::function<bool()> folder_holds = {};  ///< tells any thread whether the folder is where it was
    /// Writes the log's file before the log needs it, if the disk has room in plenty. A sync of bytes that are
    /// overwritten is a write of the disk; of bytes that are appended it is a change of the file system, too.
    bool lays_out_log = false;
  };

  /// The folder is the caller's, and need not stay open.
  explicit StoreFolder(int folder) : StoreFolder(folder, Options()) {}
  StoreFolder(int folder, Options options);

  /// Throws std::system_error, too.
  Database open_writer() override;
  Database open_reader() override;
  bool holds() const override { return identity_->holds(); }

 private:
  void create() const;
  void sync_log() const;
  void lay_out_log() const;

  base::Fd folder_;
  Options options_;
  StoreVfs vfs_;
  std::optional<StoreIdentity> identity_;
};

}  // namespace duet::task
