#include "task/store_vfs.h"

#include <cstring>
#include <new>

namespace duet::task {
namespace {

constexpr std::size_t most_gathered = std::size_t{64} << 10;  // SQLite's unix files take less than 128 KiB at once

// SQLite's own. It counts what it allocates, under a lock, though nobody asks; that can be said only before it is in
// use.
sqlite3_vfs* system_vfs() {
  [[maybe_unused]] static const int code = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  return sqlite3_vfs_find(nullptr);
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

// What stands behind SQLite's own part of a file. It begins with the methods that SQLite calls, and so is found by
// them.
struct StoreVfs::File : sqlite3_io_methods {
  File(StoreVfs& vfs, const char* its_path, sqlite3_file& its_base, bool is_log);

  static File& of(sqlite3_file* file) { return const_cast<File&>(static_cast<const File&>(*file->pMethods)); }
  static int write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset);
  static int read(sqlite3_file* file, void* bytes, int count, sqlite3_int64 offset);
  static int truncate(sqlite3_file* file, sqlite3_int64 size);
  static int sync(sqlite3_file* file, int flags);
  static int size(sqlite3_file* file, sqlite3_int64* out);
  static int close(sqlite3_file* file);

  int gather(std::string_view bytes, sqlite3_int64 offset);
  int write_gathered();
  int write_now(std::string_view bytes, sqlite3_int64 offset);
  int ask(Step step) const { return owner.fault_ ? owner.fault_(step, last_part(path)) : SQLITE_OK; }

  StoreVfs& owner;
  const char* path;  // SQLite keeps it as long as the file is open
  sqlite3_file& base;
  const sqlite3_io_methods& system;
  bool gathers;
  std::string gathered = {};
  sqlite3_int64 begin = 0;  // of what was gathered, in the file
};

StoreVfs::File::File(StoreVfs& vfs, const char* its_path, sqlite3_file& its_base, bool is_log)
    : sqlite3_io_methods(*its_base.pMethods),
      owner(vfs),
      path(its_path),
      base(its_base),
      system(*its_base.pMethods),
      gathers(is_log) {
  xWrite = write;
  xSync = sync;
  xClose = close;
  if (!gathers) return;
  xRead = read;
  xTruncate = truncate;
  xFileSize = size;
  gathered.reserve(most_gathered);
}

int StoreVfs::File::write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
  const std::string_view text(static_cast<const char*>(bytes), static_cast<std::size_t>(count));
  return of(file).gathers ? of(file).gather(text, offset) : of(file).write_now(text, offset);
}

int StoreVfs::File::gather(std::string_view bytes, sqlite3_int64 offset) {
  const bool follows = offset == begin + static_cast<sqlite3_int64>(gathered.size());
  const bool has_room = gathered.size() + bytes.size() <= most_gathered;
  if (!follows || !has_room) {
    if (const int code = write_gathered()) return code;
    if (bytes.size() > most_gathered) return write_now(bytes, offset);
    begin = offset;
  }
  gathered += bytes;
  return SQLITE_OK;
}

// What cannot be written is not tried again: SQLite is told, and does not count on it.
int StoreVfs::File::write_gathered() {
  if (gathered.empty()) return SQLITE_OK;
  const int code = write_now(gathered, begin);
  gathered.clear();
  return code;
}

int StoreVfs::File::write_now(std::string_view bytes, sqlite3_int64 offset) {
  if (const int code = ask(Step::write)) return code;
  return system.xWrite(&base, bytes.data(), static_cast<int>(bytes.size()), offset);
}

int StoreVfs::File::read(sqlite3_file* file, void* bytes, int count, sqlite3_int64 offset) {
  if (const int code = of(file).write_gathered()) return code;
  return of(file).system.xRead(file, bytes, count, offset);
}

int StoreVfs::File::truncate(sqlite3_file* file, sqlite3_int64 size) {
  if (const int code = of(file).write_gathered()) return code;
  return of(file).system.xTruncate(file, size);
}

int StoreVfs::File::size(sqlite3_file* file, sqlite3_int64* out) {
  if (const int code = of(file).write_gathered()) return code;
  return of(file).system.xFileSize(file, out);
}

int StoreVfs::File::sync(sqlite3_file* file, int flags) {
  if (const int code = of(file).write_gathered()) return code;
  if (const int code = of(file).ask(Step::sync)) return code;
  return of(file).system.xSync(file, flags);
}

// What was gathered and never synced belongs to no commit.
int StoreVfs::File::close(sqlite3_file* file) {
  File& own = of(file);
  const int code = own.system.xClose(file);
  own.~File();
  return code;
}

StoreVfs::StoreVfs(Fault fault)
    : system_(system_vfs()),
      name_("duet-" + std::to_string(reinterpret_cast<std::uintptr_t>(this))),
      fault_(std::move(fault)),
      vfs_{*system_, this} {
  vfs_.zName = name_.c_str();
  vfs_.pNext = nullptr;
  vfs_.szOsFile = system_->szOsFile + static_cast<int>(sizeof(File));
  vfs_.xFullPathname = full_name;
  vfs_.xOpen = open;
  sqlite3_vfs_register(&vfs_, 0);
}

StoreVfs::~StoreVfs() { sqlite3_vfs_unregister(&vfs_); }

int StoreVfs::full_name(sqlite3_vfs* /*vfs*/, const char* path, int size, char* out) {
  const std::size_t length = std::strlen(path);
  if (length >= static_cast<std::size_t>(size)) return SQLITE_CANTOPEN;
  std::memcpy(out, path, length + 1);
  return SQLITE_OK;
}

int StoreVfs::open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* flags_out) {
  StoreVfs& self = *static_cast<Vfs*>(vfs)->owner;
  const int code = self.system_->xOpen(self.system_, path, file, flags, flags_out);
  if (code != SQLITE_OK || path == nullptr) return code;
  try {
    void* behind = reinterpret_cast<char*>(file) + self.system_->szOsFile;
    file->pMethods = new (behind) File(self, path, *file, (flags & SQLITE_OPEN_WAL) != 0);
    return SQLITE_OK;
  } catch (const std::bad_alloc&) {
    file->pMethods->xClose(file);
    file->pMethods = nullptr;
    return SQLITE_NOMEM;
  }
}

}  // namespace duet::task
