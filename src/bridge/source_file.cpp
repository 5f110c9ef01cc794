#include "bridge/source_file.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "duet/base/fd.h"

namespace duet::bridge {
namespace {

constexpr std::int64_t clock_tick_ns = 100'000'000;  // generous: file systems have 1 to 10 ms, or 2 s (FAT, by mtime)

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

bool same(const timespec& a, const timespec& b) { return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec; }

}  // namespace

FileStamp::FileStamp(const struct stat& status) : status_(status) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t age = nanoseconds(now) - std::max(nanoseconds(status.st_mtim), nanoseconds(status.st_ctim));
  sure_ = age > clock_tick_ns;
}

bool FileStamp::same_file(const struct stat& status) const {
  return status.st_dev == status_.st_dev && status.st_ino == status_.st_ino && status.st_size == status_.st_size &&
         same(status.st_mtim, status_.st_mtim) && same(status.st_ctim, status_.st_ctim);
}

bool FileStamp::still_holds(const std::string& path) const {
  struct stat status {};
  return sure_ && stat(path.c_str(), &status) == 0 && same_file(status);
}

std::optional<SourceFile> read_source_file(const std::string& path, std::size_t most) {
  const base::Fd file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat status {};
  if (!file || fstat(file.get(), &status) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) > most) {
    errno = S_ISREG(status.st_mode) ? EFBIG : S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    return std::nullopt;
  }
  // Stamped before it is read: a write meanwhile makes the stamp wrong, and the file is read again.
  SourceFile out{.bytes = {}, .stamp = FileStamp(status)};
  out.bytes.resize(static_cast<std::size_t>(status.st_size));
  std::size_t have = 0;
  while (have < out.bytes.size()) {
    const ssize_t count = read(file.get(), out.bytes.data() + have, out.bytes.size() - have);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    have += static_cast<std::size_t>(count);
  }
  out.bytes.resize(have);
  return out;
}

}  // namespace duet::bridge
