#include "simulate/disk_vfs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>
#include <set>
#include <string>

namespace duet::simulate {
namespace {

constexpr std::string_view descriptors = "/proc/self/fd/";
constexpr std::int64_t julian_day_of_1970 = 210866760000000;  // in milliseconds

int code_of(int error, int otherwise) { return error == ENOSPC || error == EDQUOT ? SQLITE_FULL : otherwise; }

}  // namespace

// Who holds what of a file: the five levels of a database, and the eight bytes of its shared memory.
struct DiskVfs::Locks {
  std::set<const Handle*> shared;
  const Handle* reserved = nullptr;
  const Handle* exclusive = nullptr;
  std::array<std::set<const Handle*>, SQLITE_SHM_NLOCK> memory_shared;
  std::array<const Handle*, SQLITE_SHM_NLOCK> memory_exclusive{};
  int memory_users = 0;
  NodePointer memory;
  int handles = 0;
};

struct DiskVfs::Handle {
  sqlite3_file file;  // SQLite's part; must be the first
  DiskVfs* owner;
  NodePointer node;
  NodePointer folder;
  std::string name;
  Locks* locks;
  int level;
  bool new_name;   // its folder is to be synced with it
  bool temporary;  // removed when it is closed
  bool has_memory;
};

DiskVfs::DiskVfs(Disk& disk, Random chance, World world)
    : disk_(disk), chance_(chance), world_(std::move(world)), before_(sqlite3_vfs_find(nullptr)) {
  vfs_.iVersion = 2;
  vfs_.szOsFile = sizeof(Handle);
  vfs_.mxPathname = 512;
  vfs_.zName = "duet-simulated";
  vfs_.pAppData = this;
  vfs_.xOpen = open;
  vfs_.xDelete = remove;
  vfs_.xAccess = access;
  vfs_.xFullPathname = full_name;
  vfs_.xRandomness = randomness;
  vfs_.xSleep = sleep;
  vfs_.xCurrentTime = current_time;
  vfs_.xCurrentTimeInt64 = current_time_milliseconds;
  vfs_.xGetLastError = last_error;
  sqlite3_vfs_register(&vfs_, 1);
  sqlite3_randomness(0, nullptr);  // SQLite takes its chance anew, from us
}

DiskVfs::~DiskVfs() {
  sqlite3_vfs_unregister(&vfs_);
  if (before_ != nullptr) sqlite3_vfs_register(before_, 1);
}

DiskVfs::Place DiskVfs::place_of(const char* path) const {
  std::string_view rest(path);
  if (!rest.starts_with(descriptors)) return {disk_.root(), rest.substr(rest.rfind('/') + 1)};
  rest.remove_prefix(descriptors.size());
  int number = -1;
  std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return {world_.folder_of ? world_.folder_of(number) : nullptr, rest.substr(rest.find('/') + 1)};
}

DiskVfs::Handle& DiskVfs::handle(sqlite3_file* file) { return *reinterpret_cast<Handle*>(file); }

int DiskVfs::open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* flags_out) {
  file->pMethods = nullptr;
  DiskVfs& own = self(vfs);
  if (path == nullptr) return SQLITE_CANTOPEN;  // everything temporary is kept in memory
  const Place place = own.place_of(path);
  if (!place.folder) return SQLITE_CANTOPEN;
  NodePointer node = Disk::find(*place.folder, place.name);
  const bool is_new = !node;
  if (is_new) {
    if ((flags & SQLITE_OPEN_CREATE) == 0) return SQLITE_CANTOPEN;
    if (const int error = own.disk_.make(*place.folder, place.name, false, node)) {
      return code_of(error, SQLITE_CANTOPEN);
    }
  }
  auto& locks = own.locks_[node.get()];
  if (!locks) locks = std::make_unique<Locks>();
  ++locks->handles;
  constexpr int journals = SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL;
  new (file) Handle{.file = {&methods()},
                    .owner = &own,
                    .node = node,
                    .folder = place.folder,
                    .name = std::string(place.name),
                    .locks = locks.get(),
                    .level = SQLITE_LOCK_NONE,
                    .new_name = (flags & SQLITE_OPEN_CREATE) != 0 && (flags & journals) != 0,
                    .temporary = (flags & SQLITE_OPEN_DELETEONCLOSE) != 0,
                    .has_memory = false};
  if (flags_out != nullptr) *flags_out = flags;
  return SQLITE_OK;
}

int DiskVfs::close(sqlite3_file* file) {
  Handle& open = handle(file);
  unlock(file, SQLITE_LOCK_NONE);
  memory_unmap(file, 0);
  if (open.temporary) open.owner->disk_.remove(*open.folder, open.name);
  if (--open.locks->handles == 0) open.owner->locks_.erase(open.node.get());
  open.~Handle();
  return SQLITE_OK;
}

int DiskVfs::remove(sqlite3_vfs* vfs, const char* path, int sync_folder) {
  DiskVfs& own = self(vfs);
  const Place place = own.place_of(path);
  if (!place.folder) return SQLITE_IOERR_DELETE_NOENT;
  const int error = own.disk_.remove(*place.folder, place.name);
  if (error == ENOENT) return SQLITE_IOERR_DELETE_NOENT;
  if (error != 0) return SQLITE_IOERR_DELETE;
  if (sync_folder == 0) return SQLITE_OK;
  return own.disk_.sync(*place.folder, place.name, own.chance_) == 0 ? SQLITE_OK : SQLITE_IOERR_DIR_FSYNC;
}

int DiskVfs::access(sqlite3_vfs* vfs, const char* path, int flags, int* result) {
  const Place place = self(vfs).place_of(path);
  const NodePointer node = place.folder ? Disk::find(*place.folder, place.name) : nullptr;
  // An empty journal counts as none, as SQLite's own way to files has it.
  *result = node && (flags != SQLITE_ACCESS_EXISTS || !node->now.empty()) ? 1 : 0;
  return SQLITE_OK;
}

int DiskVfs::full_name(sqlite3_vfs* /*vfs*/, const char* path, int size, char* out) {
  const std::size_t length = std::strlen(path);
  if (length >= static_cast<std::size_t>(size)) return SQLITE_CANTOPEN;
  std::memcpy(out, path, length + 1);
  return SQLITE_OK;
}

int DiskVfs::randomness(sqlite3_vfs* vfs, int count, char* out) {
  for (int i = 0; i < count; ++i) out[i] = static_cast<char>(self(vfs).chance_.next());
  return count;
}

int DiskVfs::sleep(sqlite3_vfs* /*vfs*/, int microseconds) { return microseconds; }

int DiskVfs::current_time(sqlite3_vfs* vfs, double* out) {
  constexpr double milliseconds_a_day = 86'400'000;
  sqlite3_int64 milliseconds = 0;
  current_time_milliseconds(vfs, &milliseconds);
  *out = static_cast<double>(milliseconds) / milliseconds_a_day;
  return SQLITE_OK;
}

int DiskVfs::current_time_milliseconds(sqlite3_vfs* vfs, sqlite3_int64* out) {
  *out = julian_day_of_1970 + self(vfs).world_.unix_milliseconds();
  return SQLITE_OK;
}

int DiskVfs::last_error(sqlite3_vfs* /*vfs*/, int /*size*/, char* /*out*/) { return 0; }

int DiskVfs::read(sqlite3_file* file, void* into, int count, sqlite3_int64 offset) {
  const std::string& content = handle(file).node->now;
  const auto at = static_cast<std::size_t>(offset);
  const auto wanted = static_cast<std::size_t>(count);
  const std::size_t there = at < content.size() ? std::min(wanted, content.size() - at) : 0;
  if (there > 0) std::memcpy(into, content.data() + at, there);
  if (there == wanted) return SQLITE_OK;
  std::memset(static_cast<char*>(into) + there, 0, wanted - there);
  return SQLITE_IOERR_SHORT_READ;
}

int DiskVfs::write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
  Handle& open = handle(file);
  const std::string_view content(static_cast<const char*>(bytes), static_cast<std::size_t>(count));
  const int error = open.owner->disk_.write(*open.node, open.name, static_cast<std::uint64_t>(offset), content);
  return error == 0 ? SQLITE_OK : code_of(error, SQLITE_IOERR_WRITE);
}

int DiskVfs::truncate(sqlite3_file* file, sqlite3_int64 size) {
  Handle& open = handle(file);
  const int error = open.owner->disk_.truncate(*open.node, open.name, static_cast<std::uint64_t>(size));
  return error == 0 ? SQLITE_OK : code_of(error, SQLITE_IOERR_TRUNCATE);
}

int DiskVfs::sync(sqlite3_file* file, int /*flags*/) {
  Handle& open = handle(file);
  DiskVfs& own = *open.owner;
  if (own.disk_.sync(*open.node, open.name, own.chance_) != 0) return SQLITE_IOERR_FSYNC;
  if (!open.new_name) return SQLITE_OK;
  if (own.disk_.sync(*open.folder, open.name, own.chance_) != 0) return SQLITE_IOERR_DIR_FSYNC;
  open.new_name = false;
  return SQLITE_OK;
}

int DiskVfs::file_size(sqlite3_file* file, sqlite3_int64* size) {
  *size = static_cast<sqlite3_int64>(handle(file).node->now.size());
  return SQLITE_OK;
}

int DiskVfs::control(sqlite3_file* file, int operation, void* argument) {
  Handle& open = handle(file);
  if (operation != SQLITE_FCNTL_HAS_MOVED) return SQLITE_NOTFOUND;
  *static_cast<int*>(argument) = Disk::find(*open.folder, open.name) == open.node ? 0 : 1;
  return SQLITE_OK;
}

int DiskVfs::sector_size(sqlite3_file* /*file*/) { return 4096; }
int DiskVfs::characteristics(sqlite3_file* /*file*/) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

int DiskVfs::lock(sqlite3_file* file, int level) {
  Handle& open = handle(file);
  Locks& locks = *open.locks;
  if (open.level >= level) return SQLITE_OK;
  if (level == SQLITE_LOCK_SHARED) {
    if (locks.exclusive != nullptr) return SQLITE_BUSY;
    locks.shared.insert(&open);
  } else if (level == SQLITE_LOCK_RESERVED) {
    if (locks.reserved != nullptr && locks.reserved != &open) return SQLITE_BUSY;
    locks.reserved = &open;
  } else {
    if (locks.exclusive != nullptr && locks.exclusive != &open) return SQLITE_BUSY;
    locks.exclusive = &open;  // pending: nobody new comes in
    open.level = SQLITE_LOCK_PENDING;
    if (locks.shared.size() > (locks.shared.contains(&open) ? 1U : 0U)) return SQLITE_BUSY;
  }
  open.level = level;
  return SQLITE_OK;
}

int DiskVfs::unlock(sqlite3_file* file, int level) {
  Handle& open = handle(file);
  Locks& locks = *open.locks;
  if (open.level <= level) return SQLITE_OK;
  if (locks.exclusive == &open) locks.exclusive = nullptr;
  if (locks.reserved == &open) locks.reserved = nullptr;
  if (level == SQLITE_LOCK_NONE) locks.shared.erase(&open);
  open.level = level;
  return SQLITE_OK;
}

int DiskVfs::check_reserved(sqlite3_file* file, int* result) {
  *result = handle(file).locks->reserved != nullptr ? 1 : 0;
  return SQLITE_OK;
}

int DiskVfs::memory_map(sqlite3_file* file, int page, int /*size*/, int extend, void volatile** out) {
  Handle& open = handle(file);
  Locks& locks = *open.locks;
  const auto index = static_cast<std::size_t>(page);
  *out = nullptr;
  if (!open.has_memory) {
    if (locks.memory_users == 0) {
      const std::string name = open.name + "-shm";
      NodePointer memory;
      const int error = open.owner->disk_.make(*open.folder, name, false, memory);
      if (error != 0 && error != EEXIST) return SQLITE_CANTOPEN;
      memory->regions.clear();  // whoever opens it first builds it anew, whatever an earlier process left there
      locks.memory = memory;
    }
    ++locks.memory_users;
    open.has_memory = true;
  }
  auto& regions = locks.memory->regions;
  while (regions.size() <= index) {
    if (extend == 0) return SQLITE_OK;
    regions.push_back(std::make_unique<Node::Region>());
    regions.back()->fill(0);
  }
  *out = regions[index]->data();
  return SQLITE_OK;
}

int DiskVfs::memory_lock(sqlite3_file* file, int offset, int count, int flags) {
  const Handle& open = handle(file);
  Locks& locks = *open.locks;
  for (auto at = static_cast<std::size_t>(offset); at < static_cast<std::size_t>(offset + count); ++at) {
    auto& shared = locks.memory_shared[at];
    const Handle* exclusive = locks.memory_exclusive[at];
    if ((flags & SQLITE_SHM_UNLOCK) != 0) continue;
    if (exclusive != nullptr && exclusive != &open) return SQLITE_BUSY;
    if ((flags & SQLITE_SHM_EXCLUSIVE) != 0 && shared.size() > (shared.contains(&open) ? 1U : 0U)) return SQLITE_BUSY;
  }
  for (auto at = static_cast<std::size_t>(offset); at < static_cast<std::size_t>(offset + count); ++at) {
    if ((flags & SQLITE_SHM_UNLOCK) != 0) {
      if ((flags & SQLITE_SHM_SHARED) != 0) locks.memory_shared[at].erase(&open);
      if (locks.memory_exclusive[at] == &open) locks.memory_exclusive[at] = nullptr;
    } else if ((flags & SQLITE_SHM_SHARED) != 0) {
      locks.memory_shared[at].insert(&open);
    } else {
      locks.memory_exclusive[at] = &open;
    }
  }
  return SQLITE_OK;
}

void DiskVfs::memory_barrier(sqlite3_file* /*file*/) {}

int DiskVfs::memory_unmap(sqlite3_file* file, int remove) {
  Handle& open = handle(file);
  if (!open.has_memory) return SQLITE_OK;
  open.has_memory = false;
  memory_lock(file, 0, SQLITE_SHM_NLOCK, SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED);
  if (--open.locks->memory_users > 0) return SQLITE_OK;
  if (remove != 0) open.owner->disk_.remove(*open.folder, open.name + "-shm");
  open.locks->memory.reset();
  return SQLITE_OK;
}

const sqlite3_io_methods& DiskVfs::methods() {
  static const sqlite3_io_methods table = [] {
    sqlite3_io_methods all{};
    all.iVersion = 2;
    all.xClose = close;
    all.xRead = read;
    all.xWrite = write;
    all.xTruncate = truncate;
    all.xSync = sync;
    all.xFileSize = file_size;
    all.xLock = lock;
    all.xUnlock = unlock;
    all.xCheckReservedLock = check_reserved;
    all.xFileControl = control;
    all.xSectorSize = sector_size;
    all.xDeviceCharacteristics = characteristics;
    all.xShmMap = memory_map;
    all.xShmLock = memory_lock;
    all.xShmBarrier = memory_barrier;
    all.xShmUnmap = memory_unmap;
    return all;
  }();
  return table;
}

}  // namespace duet::simulate
