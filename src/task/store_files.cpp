#include "task/store_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "duet/base/fd.h"
#include "process/process_tree.h"
#include "task/sqlite.h"
#include "task/store_vfs.h"

// The layouts are those of sqlite.org/fileformat2.html and sqlite.org/walformat.html.

namespace duet::task {
namespace {

using Bytes = std::span<const unsigned char>;

std::uint32_t big_endian(Bytes bytes, std::size_t at) {
  return static_cast<std::uint32_t>(bytes[at]) << 24U | static_cast<std::uint32_t>(bytes[at + 1]) << 16U |
         static_cast<std::uint32_t>(bytes[at + 2]) << 8U | static_cast<std::uint32_t>(bytes[at + 3]);
}

std::uint32_t native(Bytes bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, &bytes[at], sizeof value);
  return value;
}

/// A file of the store, opened only to be looked at.
class RawFile {
 public:
  RawFile(int folder, const char* name) : fd_(openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {
    if (!fd_ && errno != ENOENT) throw std::system_error(errno, std::generic_category(), name);
    if (fd_) base::check_call(fstat(fd_.get(), &status_), name);
  }

  bool exists() const { return static_cast<bool>(fd_); }
  const struct stat& status() const { return status_; }
  std::uint64_t size() const { return exists() ? static_cast<std::uint64_t>(status_.st_size) : 0; }

  /// False: the file ends before.
  bool read(std::uint64_t at, std::span<unsigned char> into) const {
    const ssize_t got = pread(fd_.get(), into.data(), into.size(), static_cast<off_t>(at));
    if (got < 0) throw std::system_error(errno, std::generic_category(), "pread");
    return static_cast<std::size_t>(got) == into.size();
  }

 private:
  base::Fd fd_;
  struct stat status_ {};
};

struct MainHeader {
  std::uint32_t page_size = 0;
  std::uint32_t pages = 0;
};

/// What the write-ahead log says that SQLite will believe.
struct WriteAheadLog {
  std::uint32_t frames = 0;  // up to the last commit
  std::uint32_t pages = 0;   // of the database after that commit
  std::array<unsigned char, 8> salt{};
  std::set<std::uint32_t> written;  // pages that it holds
};

/// Each checksum goes on from the one before, so a frame that is not whole ends the log.
class RunningChecksum {
 public:
  explicit RunningChecksum(bool big) : big_(big) {}

  void add(Bytes bytes) {
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      first_ += word(bytes, at) + second_;
      second_ += word(bytes, at + 4) + first_;
    }
  }
  bool matches(Bytes bytes, std::size_t at) const {
    return big_endian(bytes, at) == first_ && big_endian(bytes, at + 4) == second_;
  }

 private:
  std::uint32_t word(Bytes bytes, std::size_t at) const {
    const std::uint32_t value = big_endian(bytes, at);
    return big_ ? value : __builtin_bswap32(value);
  }

  bool big_;
  std::uint32_t first_ = 0;
  std::uint32_t second_ = 0;
};

constexpr std::size_t log_header_size = 32;
constexpr std::size_t frame_header_size = 24;

WriteAheadLog read_log(const RawFile& file, std::uint32_t page_size) {
  WriteAheadLog log;
  std::array<unsigned char, log_header_size> header{};
  if (!file.exists() || !file.read(0, header) || big_endian(header, 8) != page_size) return log;
  const std::uint32_t magic = big_endian(header, 0);
  if ((magic & ~1U) != 0x377f0682U) return log;
  RunningChecksum checksum((magic & 1U) != 0);
  checksum.add(Bytes(header).first(24));
  if (!checksum.matches(header, 24)) return log;
  std::memcpy(log.salt.data(), &header[16], log.salt.size());

  std::vector<unsigned char> frame(frame_header_size + page_size);
  std::vector<std::uint32_t> uncommitted;
  for (std::uint64_t at = log_header_size; file.read(at, frame); at += frame.size()) {
    if (std::memcmp(&frame[8], log.salt.data(), log.salt.size()) != 0) break;
    checksum.add(Bytes(frame).first(8));
    checksum.add(Bytes(frame).subspan(frame_header_size));
    if (!checksum.matches(frame, 16)) break;
    uncommitted.push_back(big_endian(frame, 0));
    const std::uint32_t pages_after_commit = big_endian(frame, 4);
    if (pages_after_commit == 0) continue;
    log.frames += static_cast<std::uint32_t>(uncommitted.size());
    log.pages = pages_after_commit;
    log.written.insert(uncommitted.begin(), uncommitted.end());
    uncommitted.clear();
  }
  return log;
}

/// The boot of the machine in which the store was opened last, as its main file says; empty if it does not.
std::string boot_in(int folder) {
  try {
    const StoreVfs vfs;
    const std::string place = "file:/proc/self/fd/" + std::to_string(folder) + '/' + store_file + "?immutable=1";
    const Database database(place, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, vfs.name());
    return database.text("SELECT value FROM remembered WHERE name='boot'");
  } catch (const SqliteError&) {
    return {};  // whoever opens the store hears why
  }
}

/// The index beside the log is only a cache, but a process that was killed leaves in it how many frames it had
/// committed: so a log that was cut off since is told from one whose last frames were never finished. It is never
/// synced: after another boot of the machine it may be older than the log, and only tells about one with the same salt.
std::optional<std::string> compare_with_index(int folder, const RawFile& index, const WriteAheadLog& log) {
  std::array<unsigned char, 100> header{};
  if (!index.exists() || !index.read(0, header)) return std::nullopt;
  const bool is_whole = std::memcmp(&header[0], &header[48], 48) == 0 && header[12] == 1;
  if (!is_whole || native(header, 0) != 3007000) return std::nullopt;
  const std::uint32_t committed = native(header, 16);
  const std::uint32_t copied_to_main = native(header, 96);
  const bool same_salt = log.frames > 0 && std::memcmp(&header[32], log.salt.data(), log.salt.size()) == 0;
  const std::uint32_t found = same_salt ? log.frames : 0;
  if (committed <= copied_to_main || found >= committed || boot_in(folder) != process::boot_id()) return std::nullopt;
  return std::string(store_log_file) + " is damaged or cut off: of the " + std::to_string(committed) +
         " pages that were committed to it it has " + std::to_string(found);
}

std::string cut_off(std::uint64_t size, std::string_view more) {
  return std::string(store_file) + " is cut off: it has " + std::to_string(size) + " bytes, " + std::string(more);
}

/// A sentence if it is not a whole header of ours.
std::optional<std::string> read_header(const RawFile& file, MainHeader& header) {
  std::array<unsigned char, 100> bytes{};
  if (!S_ISREG(file.status().st_mode)) return std::string(store_file) + " is not a regular file";
  if (!file.read(0, bytes)) return cut_off(file.size(), "less than the header of a store");
  if (std::memcmp(bytes.data(), "SQLite format 3", 16) != 0) {
    return std::string(store_file) + " is not a store: it does not begin like an SQLite database";
  }
  if (big_endian(bytes, 68) != store_application_id) {
    return std::string(store_file) + " is an SQLite database of another program";
  }
  header.page_size = big_endian(bytes, 14) & 0xFFFFU;
  if (header.page_size == 1) header.page_size = 65536;
  header.pages = big_endian(bytes, 28);
  const bool sound = header.page_size >= 512 && (header.page_size & (header.page_size - 1)) == 0 && header.pages > 0;
  return sound ? std::nullopt : std::optional(std::string(store_file) + " is damaged: its header makes no sense");
}

bool is_empty_folder(int parent, const char* name) {
  base::Fd fd(openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return true;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(fdopendir(fd.release()), closedir);
  while (const dirent* entry = folder ? readdir(folder.get()) : nullptr) {
    const std::string_view name_in_folder = entry->d_name;
    if (name_in_folder != "." && name_in_folder != "..") return false;
  }
  return true;
}

}  // namespace

StoreTrace find_store(int folder) {
  struct stat status {};
  if (fstatat(folder, store_file, &status, AT_SYMLINK_NOFOLLOW) == 0) return StoreTrace::file;
  if (errno != ENOENT) throw std::system_error(errno, std::generic_category(), store_file);
  const bool remains = RawFile(folder, store_log_file).size() > 0 || !is_empty_folder(folder, output_folder);
  return remains ? StoreTrace::remains : StoreTrace::none;
}

std::optional<std::string> find_damage(int folder) {
  const RawFile file(folder, store_file);
  if (!file.exists()) return std::string(store_file) + " is missing";
  MainHeader header;
  if (std::optional<std::string> damage = read_header(file, header)) return damage;
  const WriteAheadLog log = read_log(RawFile(folder, store_log_file), header.page_size);
  if (std::optional<std::string> damage = compare_with_index(folder, RawFile(folder, store_index_file), log))
    return damage;

  const std::uint64_t whole_pages = file.size() / header.page_size;
  const std::uint64_t needed = log.frames > 0 ? log.pages : header.pages;
  for (std::uint64_t page = whole_pages + 1; page <= needed; ++page) {
    if (log.written.contains(static_cast<std::uint32_t>(page))) continue;
    return cut_off(file.size(), std::to_string(needed * header.page_size) + " are needed");
  }
  return std::nullopt;
}

StoreIdentity::StoreIdentity(int folder, std::function<bool()> folder_holds)
    : folder_(folder), folder_holds_(std::move(folder_holds)), files_(look()) {}

bool StoreIdentity::holds() const { return look() == files_ && (!folder_holds_ || folder_holds_()); }

StoreIdentity::Files StoreIdentity::look() const {
  constexpr std::array<const char*, 3> names{store_file, store_log_file, output_folder};
  Files found;
  for (std::size_t i = 0; i < found.size(); ++i) {
    // Who asks for the times of a file makes its next write change them, and the next sync write them down, too.
    struct statx status {};
    if (statx(folder_, names[i], AT_SYMLINK_NOFOLLOW, STATX_INO, &status) != 0) continue;
    found[i] = {makedev(status.stx_dev_major, status.stx_dev_minor), status.stx_ino};
  }
  return found;
}

}  // namespace duet::task
