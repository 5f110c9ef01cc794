#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace duet::task {

/// SQLite's way to files, with two differences. Names are taken as they are given: its own would resolve a path below
/// /proc/self/fd and then refuse it when it is longer than 512 bytes. And what a transaction adds to the write-ahead
/// log is written at once, before its sync: SQLite writes each page and each page's header by itself.
///
/// A test may pass a function that is asked before each write and sync and makes it fail by returning something other
/// than SQLITE_OK. It is called on the thread that uses the database. Registered while it lives; must outlive the
/// databases opened through it.
class StoreVfs {
 public:
  enum class Step : std::uint8_t { write, sync };
  using Fault = std::function<int(Step step, std::string_view file)>;

  explicit StoreVfs(Fault fault = {});
  StoreVfs(const StoreVfs&) = delete;
  StoreVfs& operator=(const StoreVfs&) = delete;
  ~StoreVfs();

  const char* name() const { return vfs_.zName; }

 private:
  struct Vfs : sqlite3_vfs {
    StoreVfs* owner;
  };
  struct File;

  static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* flags_out);
  static int full_name(sqlite3_vfs* vfs, const char* path, int size, char* out);

  sqlite3_vfs* system_;
  std::string name_;
  Fault fault_;
  Vfs vfs_;
};

}  // namespace duet::task
