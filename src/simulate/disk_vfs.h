#pragma once

#include <sqlite3.h>

#include <functional>
#include <string_view>

#include "simulate/disk.h"
#include "simulate/random.h"

namespace duet::simulate {

/// SQLite's way to files of a simulated disk: what it writes and syncs goes there, its locks and its shared memory are
/// among the connections of this process, and its chance and its time are ours.
///
/// While it lives it is SQLite's default, so that whatever opens a database in this process opens it here. A name is
/// taken as `/proc/self/fd/N/file`, N being for `folder_of` to know, or as a file of the disk's root. For one thread;
/// must outlive the databases opened through it.
class DiskVfs {
 public:
  struct World {
    std::function<NodePointer(int descriptor)> folder_of = {};
    std::function<std::int64_t()> unix_milliseconds = [] { return std::int64_t{0}; };
  };

  DiskVfs(Disk& disk, Random chance, World world);
  DiskVfs(const DiskVfs&) = delete;
  DiskVfs& operator=(const DiskVfs&) = delete;
  ~DiskVfs();

  const char* name() const { return vfs_.zName; }

 private:
  struct Locks;
  struct Handle;
  struct Place {
    NodePointer folder;
    std::string_view name;
  };

  static DiskVfs& self(sqlite3_vfs* vfs) { return *static_cast<DiskVfs*>(vfs->pAppData); }
  Place place_of(const char* path) const;
  static const sqlite3_io_methods& methods();

  static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* flags_out);
  static int remove(sqlite3_vfs* vfs, const char* path, int sync_folder);
  static int access(sqlite3_vfs* vfs, const char* path, int flags, int* result);
  static int full_name(sqlite3_vfs* vfs, const char* path, int size, char* out);
  static int randomness(sqlite3_vfs* vfs, int count, char* out);
  static int sleep(sqlite3_vfs* vfs, int microseconds);
  static int current_time(sqlite3_vfs* vfs, double* out);
  static int current_time_milliseconds(sqlite3_vfs* vfs, sqlite3_int64* out);
  static int last_error(sqlite3_vfs* vfs, int size, char* out);

  static Handle& handle(sqlite3_file* file);
  static int close(sqlite3_file* file);
  static int read(sqlite3_file* file, void* into, int count, sqlite3_int64 offset);
  static int write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset);
  static int truncate(sqlite3_file* file, sqlite3_int64 size);
  static int sync(sqlite3_file* file, int flags);
  static int file_size(sqlite3_file* file, sqlite3_int64* size);
  static int lock(sqlite3_file* file, int level);
  static int unlock(sqlite3_file* file, int level);
  static int check_reserved(sqlite3_file* file, int* result);
  static int control(sqlite3_file* file, int operation, void* argument);
  static int sector_size(sqlite3_file* file);
  static int characteristics(sqlite3_file* file);
  static int memory_map(sqlite3_file* file, int page, int size, int extend, void volatile** out);
  static int memory_lock(sqlite3_file* file, int offset, int count, int flags);
  static void memory_barrier(sqlite3_file* file);
  static int memory_unmap(sqlite3_file* file, int remove);

  Disk& disk_;
  Random chance_;
  World world_;
  std::map<const Node*, std::unique_ptr<Locks>> locks_;
  sqlite3_vfs* before_;
  sqlite3_vfs vfs_{};
};

}  // namespace duet::simulate
