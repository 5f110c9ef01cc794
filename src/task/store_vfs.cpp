#include "task/store_vfs.h"

#include <cstring>

namespace duet::task {
namespace {

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

// What stands behind SQLite's own part of a file, so that write() and sync() know whose it is.
struct StoreVfs::Tag {
  StoreVfs* owner;
  const char* path;  // SQLite keeps it as long as the file is open
  const sqlite3_io_methods* methods;
  sqlite3_io_methods faulty;  // of each file, since those of databases and of logs differ
};

StoreVfs::StoreVfs(Fault fault) : system_(sqlite3_vfs_find(nullptr)), vfs_(*system_), fault_(std::move(fault)) {
  name_ = "duet-" + std::to_string(reinterpret_cast<std::uintptr_t>(this));
  vfs_.zName = name_.c_str();
  vfs_.pNext = nullptr;
  vfs_.xFullPathname = full_name;
  if (fault_) {
    vfs_.szOsFile = system_->szOsFile + static_cast<int>(sizeof(Tag));
    vfs_.pAppData = this;
    vfs_.xOpen = open;
  }
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
  auto& self = *static_cast<StoreVfs*>(vfs->pAppData);
  const int code = self.system_->xOpen(self.system_, path, file, flags, flags_out);
  if (code != SQLITE_OK || path == nullptr) return code;
  Tag& tag = tag_of(file);
  tag = {&self, path, file->pMethods, *file->pMethods};
  tag.faulty.xWrite = write;
  tag.faulty.xSync = sync;
  file->pMethods = &tag.faulty;
  return code;
}

StoreVfs::Tag& StoreVfs::tag_of(sqlite3_file* file) {
  return *reinterpret_cast<Tag*>(reinterpret_cast<char*>(file) + sqlite3_vfs_find(nullptr)->szOsFile);
}

int StoreVfs::write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
  const Tag& tag = tag_of(file);
  const int fault = tag.owner->fault_(Step::write, last_part(tag.path));
  return fault != SQLITE_OK ? fault : tag.methods->xWrite(file, bytes, count, offset);
}

int StoreVfs::sync(sqlite3_file* file, int flags) {
  const Tag& tag = tag_of(file);
  const int fault = tag.owner->fault_(Step::sync, last_part(tag.path));
  return fault != SQLITE_OK ? fault : tag.methods->xSync(file, flags);
}

}  // namespace duet::task
