// The program's calls about files, as the linker finds them before the C library's: those about descriptors and folders
// of the simulated machine go there, all others to the kernel. So the rooms that are simulated need to know nothing of
// it. Only in the simulator's own program.

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "simulate/machine.h"

namespace {

using duet::simulate::Machine;

Machine* machine_of(int descriptor) { return descriptor >= Machine::first_descriptor ? Machine::current() : nullptr; }

// A folder that is read, in the place of the C library's own.
struct Listing {
  int descriptor;
  std::vector<std::string> names;
  std::size_t next = 0;
  dirent entry{};
};

std::set<Listing*>& listings() {
  static std::set<Listing*> all;
  return all;
}

Listing* listing_of(DIR* folder) {
  auto* listing = reinterpret_cast<Listing*>(folder);
  return listings().contains(listing) ? listing : nullptr;
}

int to_int(long result) { return static_cast<int>(result); }

}  // namespace

extern "C" {

int openat(int folder, const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  if (Machine* machine = machine_of(folder)) return machine->open_at(folder, path, flags);
  return to_int(syscall(SYS_openat, folder, path, flags, mode));
}

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list more;
    va_start(more, flags);
    mode = va_arg(more, mode_t);
    va_end(more);
  }
  Machine* machine = Machine::current();
  if (machine != nullptr && std::strcmp(path, "/proc/sys/kernel/random/boot_id") == 0) return machine->open_boot_id();
  return to_int(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

ssize_t read(int fd, void* into, size_t count) {
  if (Machine* machine = machine_of(fd)) return machine->read_on(fd, into, count);
  return syscall(SYS_read, fd, into, count);
}

int close(int fd) {
  if (Machine* machine = machine_of(fd)) return machine->close(fd);
  return to_int(syscall(SYS_close, fd));
}

int fcntl(int fd, int command, ...) {
  va_list more;
  va_start(more, command);
  void* argument = va_arg(more, void*);
  va_end(more);
  Machine* machine = machine_of(fd);
  if (machine == nullptr) return to_int(syscall(SYS_fcntl, fd, command, argument));
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return machine->duplicate(fd);
  return 0;
}

ssize_t pread(int fd, void* into, size_t count, off_t offset) {
  if (Machine* machine = machine_of(fd)) return machine->read_at(fd, into, count, static_cast<std::uint64_t>(offset));
  return syscall(SYS_pread64, fd, into, count, offset);
}

ssize_t pwrite(int fd, const void* bytes, size_t count, off_t offset) {
  if (Machine* machine = machine_of(fd)) return machine->write_at(fd, bytes, count, static_cast<std::uint64_t>(offset));
  return syscall(SYS_pwrite64, fd, bytes, count, offset);
}

int fsync(int fd) {
  if (Machine* machine = machine_of(fd)) return machine->sync(fd);
  return to_int(syscall(SYS_fsync, fd));
}

int fdatasync(int fd) {
  if (Machine* machine = machine_of(fd)) return machine->sync(fd);
  return to_int(syscall(SYS_fdatasync, fd));
}

int ftruncate(int fd, off_t size) noexcept {
  if (Machine* machine = machine_of(fd)) return machine->truncate(fd, static_cast<std::uint64_t>(size));
  return to_int(syscall(SYS_ftruncate, fd, size));
}

int flock(int fd, int operation) noexcept {
  if (Machine* machine = machine_of(fd)) return machine->lock(fd, operation);
  return to_int(syscall(SYS_flock, fd, operation));
}

int fstat(int fd, struct stat* out) noexcept {
  if (Machine* machine = machine_of(fd)) return machine->status(fd, *out);
  return to_int(syscall(SYS_fstat, fd, out));
}

int fstatat(int folder, const char* path, struct stat* out, int flags) noexcept {
  if (Machine* machine = machine_of(folder)) return machine->status_at(folder, path, *out);
  return to_int(syscall(SYS_newfstatat, folder, path, out, flags));
}

int statx(int folder, const char* path, int flags, unsigned mask, struct statx* out) noexcept {
  Machine* machine = machine_of(folder);
  if (machine == nullptr) return to_int(syscall(SYS_statx, folder, path, flags, mask, out));
  struct stat status {};
  if (machine->status_at(folder, path, status) != 0) return -1;
  std::memset(out, 0, sizeof *out);
  out->stx_ino = status.st_ino;
  out->stx_mode = static_cast<decltype(out->stx_mode)>(status.st_mode);
  out->stx_size = static_cast<decltype(out->stx_size)>(status.st_size);
  return 0;
}

// A small disk, so that nothing is laid out in advance.
int fstatvfs(int fd, struct statvfs* out) noexcept {
  std::memset(out, 0, sizeof *out);
  if (machine_of(fd) != nullptr) return 0;
  errno = ENOSYS;
  return -1;
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  if (Machine* machine = machine_of(folder)) return machine->remove_at(folder, path);
  return to_int(syscall(SYS_unlinkat, folder, path, flags));
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  if (Machine* machine = machine_of(from_folder)) return machine->rename_at(from_folder, from, to);
  return to_int(syscall(SYS_renameat, from_folder, from, to_folder, to));
}

int mkdirat(int folder, const char* path, mode_t mode) noexcept {
  if (Machine* machine = machine_of(folder)) return machine->make_folder_at(folder, path);
  return to_int(syscall(SYS_mkdirat, folder, path, mode));
}

// Only folders of the machine are ever read here.
DIR* fdopendir(int fd) {
  Machine* machine = machine_of(fd);
  if (machine == nullptr) {
    errno = EBADF;
    return nullptr;
  }
  auto* listing = new Listing{.descriptor = fd, .names = machine->list(fd)};
  listings().insert(listing);
  return reinterpret_cast<DIR*>(listing);
}

dirent* readdir(DIR* folder) {
  Listing* listing = listing_of(folder);
  if (listing == nullptr || listing->next == listing->names.size()) return nullptr;
  const std::string& name = listing->names[listing->next++];
  std::strncpy(listing->entry.d_name, name.c_str(), sizeof listing->entry.d_name - 1);
  return &listing->entry;
}

int closedir(DIR* folder) {
  Listing* listing = listing_of(folder);
  if (listing == nullptr) return -1;
  close(listing->descriptor);
  listings().erase(listing);
  delete listing;
  return 0;
}

ssize_t getrandom(void* into, size_t count, unsigned flags) {
  Machine* machine = Machine::current();
  if (machine == nullptr) return syscall(SYS_getrandom, into, count, flags);
  for (size_t i = 0; i < count; ++i) static_cast<char*>(into)[i] = static_cast<char>(machine->chance().next());
  return static_cast<ssize_t>(count);
}

}  // extern "C"
