#include "app/daemon/settings_watch.h"

#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace duet::app {
namespace {

constexpr std::uint32_t of_settings = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE | IN_ATTRIB |
                                      IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

constexpr std::int64_t ns_in_second = 1'000'000'000;

bool is_not_there(int error) { return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP; }

// The file itself and, if it is a link, where that leads, link by link, whether something is there in the end or not.
std::vector<std::string> steps_of(const std::string& file) {
  constexpr std::size_t most = 40;  // as the system follows
  std::vector<std::string> steps{file};
  while (steps.size() <= most) {
    std::error_code none;
    const std::filesystem::path target = std::filesystem::read_symlink(steps.back(), none);
    if (none) break;
    steps.push_back((std::filesystem::path(steps.back()).parent_path() / target).string());
  }
  return steps;
}

// What another machine or another process behind the file system changes is not reported.
bool is_remote(const std::string& folder) {
  constexpr std::array<std::uint32_t, 8> remote{NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,  CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC,
                                                FUSE_SUPER_MAGIC, CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC,  V9FS_MAGIC};
  struct statfs status {};
  return statfs(folder.c_str(), &status) == 0 &&
         std::ranges::find(remote, static_cast<std::uint32_t>(status.f_type)) != remote.end();
}

}  // namespace

SettingsWatch::SettingsWatch(transport::Loop& loop, base::Log& log, std::vector<std::string> files,
                             std::function<void()> changed, Limits limits)
    : loop_(loop),
      log_(log),
      files_(std::move(files)),
      changed_(std::move(changed)),
      limits_(limits),
      notices_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (!notices_ || !watch_folders() || !watch_notices()) poll_because();
}

SettingsWatch::Fingerprints SettingsWatch::fingerprints() const {
  Fingerprints all;
  for (const std::string& file : files_) {
    struct stat status {};
    if (stat(file.c_str(), &status) != 0) {
      all.emplace_back();
      continue;
    }
    all.push_back(Fingerprint{.device = status.st_dev,
                              .inode = status.st_ino,
                              .size = status.st_size,
                              .mode = status.st_mode,
                              .owner = status.st_uid,
                              .changed_ns = status.st_ctim.tv_sec * ns_in_second + status.st_ctim.tv_nsec});
  }
  return all;
}

// The user may watch too many descriptors already: then the files are looked at now and then.
bool SettingsWatch::watch_notices() {
  try {
    watch_ = loop_.watch(notices_.get(), EPOLLIN, *this);
    return true;
  } catch (const std::system_error& refused) {
    errno = refused.code().value();
    return false;
  }
}

// Again at each look: there may be more folders, or others, by now.
bool SettingsWatch::watch_folders() {
  std::map<int, std::set<std::string>> folders;
  for (const std::string& file : files_) {
    for (const std::string& step : steps_of(file)) {
      if (!watch_folder_of(step, folders)) return false;
    }
  }
  for (const auto& [old, names] : folders_) {
    if (!folders.contains(old)) inotify_rm_watch(notices_.get(), old);
  }
  folders_ = std::move(folders);
  return true;
}

// The nearest folder that is there, and what comes next in it.
bool SettingsWatch::watch_folder_of(std::string path, std::map<int, std::set<std::string>>& folders) {
  while (path.size() > 1) {
    const std::size_t slash = path.rfind('/');
    const std::string name = path.substr(slash + 1);
    path.resize(std::max<std::size_t>(slash, 1));
    const int folder = inotify_add_watch(notices_.get(), path.c_str(), of_settings);
    if (folder >= 0) {
      folders[folder].insert(name);
      errno = EREMOTE;
      return !is_remote(path);
    }
    if (!is_not_there(errno)) return false;
  }
  return true;
}

void SettingsWatch::poll_because() {
  log_.warn("changes of the settings files are not reported here: they are looked at now and then",
            {{"reason", std::strerror(errno)}});
  watch_.cancel();
  notices_.reset();
  seen_ = fingerprints();
  timer_ = loop_.after(limits_.poll, [this] { look(); });
}

void SettingsWatch::on_ready(std::uint32_t) {
  alignas(inotify_event) std::array<char, 4096> room;
  bool changed = false;
  for (ssize_t count = 0; (count = read(notices_.get(), room.data(), room.size())) > 0;) {
    changed = concerns_us({room.data(), static_cast<std::size_t>(count)}) || changed;
  }
  if (changed) look_soon();
}

bool SettingsWatch::concerns_us(std::string_view notices) const {
  while (!notices.empty()) {
    inotify_event notice{};
    std::memcpy(&notice, notices.data(), sizeof notice);
    const auto folder = folders_.find(notice.wd);
    const bool is_named = notice.len > 0 && folder != folders_.end();
    if (!is_named && (notice.mask & IN_IGNORED) == 0) return true;  // the folder itself, or notices were lost
    if (is_named && folder->second.contains(notices.data() + sizeof notice)) return true;
    notices.remove_prefix(sizeof notice + notice.len);
  }
  return false;
}

void SettingsWatch::look_soon() {
  const base::TimePoint now = loop_.now();
  if (!first_change_) first_change_ = now;
  timer_ = loop_.at(std::min(now + limits_.quiet, *first_change_ + limits_.most), [this] { look(); });
}

void SettingsWatch::look() {
  first_change_.reset();
  if (notices_) {
    if (!watch_folders()) poll_because();
    return changed_();
  }
  timer_ = loop_.after(limits_.poll, [this] { look(); });
  Fingerprints now = fingerprints();
  if (std::exchange(seen_, now) != now) changed_();
}

}  // namespace duet::app
