#include "automation/file_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

namespace duet::automation {
namespace {

constexpr std::uint32_t appeared = IN_CREATE | IN_MOVED_TO;
constexpr std::uint32_t vanished = IN_DELETE | IN_MOVED_FROM;
constexpr std::uint32_t watched =
    appeared | vanished | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_EXCL_UNLINK | IN_ONLYDIR;
constexpr std::size_t queue_bytes = 64 * 1024;

std::string join(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty()) path += '/';
  return path.append(name);
}

bool is_within(std::string_view path, std::string_view folder) {
  return folder.empty() || path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

// `./src//x/` as `src/x`; `.` as nothing.
std::string normalized(std::string_view path) {
  std::string result;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    if (!name.empty() && name != ".") result = join(result, name);
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return result;
}

bool is_folder(int folder_fd, const char* name, unsigned char type) {
  if (type != DT_UNKNOWN) return type == DT_DIR;
  struct stat status {};
  return fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

std::string named(const std::string& folder) { return folder.empty() ? "the project" : folder; }

}  // namespace

std::string_view name_of(FileChange::Type type) {
  constexpr std::array<std::string_view, 3> names{"file.create", "file.modify", "file.delete"};
  return names.at(static_cast<std::size_t>(type));
}

FileWatch::FileWatch(transport::Loop& loop, int root, const WatchSettings& settings, Actions actions,
                     WatchLimits limits)
    : loop_(loop), root_(root), ignored_(settings.ignore), actions_(std::move(actions)), limits_(limits) {
  for (const std::string& path : settings.paths) paths_.push_back(normalized(path));
  if (paths_.empty()) paths_.emplace_back();
  open_queue();
  unread_.emplace_back();
  while (!unread_.empty()) {
    const std::string folder = std::move(unread_.front());
    unread_.pop_front();
    read_folder(folder, true);
  }
}

FileWatch::~FileWatch() {
  close_queue();
  if (reading_) loop_.cancel(*reading_);
  if (settling_) loop_.cancel(*settling_);
}

void FileWatch::open_queue() {
  queue_.reset(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (queue_) {
    loop_.watch(queue_.get(), EPOLLIN, *this);
  } else if (errno == EMFILE) {
    report("no file is watched: too many programs watch files, or too many are open (fs.inotify.max_user_instances)");
  } else {
    report("no file is watched: " + std::generic_category().message(errno));
  }
}

void FileWatch::close_queue() {
  if (queue_) loop_.unwatch(queue_.get(), *this);
  queue_.reset();
}

void FileWatch::report(const std::string& text) {
  if (!problem_.empty()) return;  // the first one is the cause of the others
  problem_ = text;
  actions_.problem(text);
}

void FileWatch::on_ready(std::uint32_t) { drain(); }

void FileWatch::drain() {
  alignas(inotify_event) std::array<char, queue_bytes> buffer;  // not initialised: the kernel fills in what is used
  while (queue_) {
    const ssize_t count = read(queue_.get(), buffer.data(), buffer.size());
    if (count <= 0) return;
    for (const char* at = buffer.data(); at < buffer.data() + count;) {
      const auto& event = *reinterpret_cast<const inotify_event*>(at);
      at += sizeof event + event.len;
      if ((event.mask & IN_Q_OVERFLOW) != 0) return start_over();
      take(event, event.len == 0 ? std::string_view() : std::string_view(event.name));
    }
  }
}

void FileWatch::take(const inotify_event& event, std::string_view name) {
  const auto found = folders_.find(event.wd);
  if (found == folders_.end()) return;
  if ((event.mask & IN_IGNORED) != 0) {
    const auto watch = watches_.find(found->second);
    if (watch != watches_.end() && watch->second == event.wd) watches_.erase(watch);
    folders_.erase(found);
    return;
  }
  if (name.empty()) return;  // of the folder itself: its parent has something to say as well
  const std::string path = join(found->second, name);
  if ((event.mask & IN_ISDIR) != 0) return take_folder(event.mask, path);
  if (is_told(path)) touch(path, (event.mask & (appeared | IN_MODIFY)) != 0);
}

void FileWatch::take_folder(std::uint32_t mask, const std::string& path) {
  if ((mask & vanished) != 0) forget_tree(path);
  if ((mask & appeared) != 0) read_later(path);
}

// Nobody knows what was lost. What is there is compared with what was.
void FileWatch::start_over() {
  close_queue();
  folders_.clear();
  watches_.clear();
  unread_.clear();
  problem_.clear();
  open_queue();
  for (const auto& [path, signature] : files_) touch(path, false);
  read_later("");
}

bool FileWatch::is_followed(std::string_view folder) const {
  if (ignored_.ignores(folder, true)) return false;
  return std::any_of(paths_.begin(), paths_.end(),
                     [folder](const std::string& path) { return is_within(folder, path) || is_within(path, folder); });
}

bool FileWatch::is_told(std::string_view file) const {
  const bool inside =
      std::any_of(paths_.begin(), paths_.end(), [file](const std::string& path) { return is_within(file, path); });
  return inside && file.size() < PATH_MAX && !ignored_.ignores(file, false) && actions_.wanted(file);
}

void FileWatch::read_later(std::string folder) {
  if (!folder.empty() && !is_followed(folder)) return;
  unread_.push_back(std::move(folder));
  if (!reading_) reading_ = loop_.at(loop_.now(), [this] { read_folders(); });
}

void FileWatch::read_folders() {
  reading_.reset();
  for (std::size_t count = 0; count < limits_.folders_a_turn && !unread_.empty(); ++count) {
    const std::string folder = std::move(unread_.front());
    unread_.pop_front();
    read_folder(folder, false);
  }
  if (!unread_.empty()) reading_ = loop_.at(loop_.now(), [this] { read_folders(); });
}

// First the watch, then the names: what comes in between is seen twice rather than not at all.
void FileWatch::read_folder(const std::string& folder, bool silent) {
  const base::Fd fd = open_folder(folder);
  if (!fd) {
    if (errno == EACCES) report("no permission to read " + named(folder) + ": changes in it are not noticed");
    return;
  }
  if (!add_watch(fd.get(), folder)) return;
  const auto closing = [](DIR* listing) { closedir(listing); };
  const std::unique_ptr<DIR, decltype(closing)> listing(fdopendir(base::duplicate(fd.get()).release()), closing);
  while (const dirent* entry = listing ? readdir(listing.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") read_entry(fd.get(), join(folder, name), entry->d_name, entry->d_type, silent);
  }
}

void FileWatch::read_entry(int folder_fd, const std::string& path, const char* name, unsigned char type, bool silent) {
  if (is_folder(folder_fd, name, type)) {
    if (is_followed(path)) unread_.push_back(path);
  } else if (is_told(path)) {
    if (!silent) return touch(path, false);
    if (const std::optional<Signature> signature = signature_of(folder_fd, name)) files_.emplace(path, *signature);
  }
}

bool FileWatch::add_watch(int folder_fd, const std::string& folder) {
  if (!queue_) return false;
  const std::string path = "/proc/self/fd/" + std::to_string(folder_fd);
  const int watch = inotify_add_watch(queue_.get(), path.c_str(), watched);
  if (watch >= 0) {
    folders_[watch] = folder;
    watches_[folder] = watch;
    return true;
  }
  if (errno == ENOSPC) {
    report("the limit of watched folders is reached: changes in " + named(folder) +
           " and in others are not noticed; raise fs.inotify.max_user_watches, or set [watch] paths or ignore");
  } else if (errno != ENOENT && errno != ENOTDIR) {
    report(named(folder) + " cannot be watched: " + std::generic_category().message(errno));
  }
  return false;
}

void FileWatch::forget_tree(const std::string& folder) {
  for (auto watch = watches_.lower_bound(folder); watch != watches_.end() && watch->first.starts_with(folder);) {
    if (!is_within(watch->first, folder)) {
      ++watch;
      continue;
    }
    inotify_rm_watch(queue_.get(), watch->second);
    folders_.erase(watch->second);
    watch = watches_.erase(watch);
  }
  const std::string below = folder + '/';
  for (auto file = files_.lower_bound(below); file != files_.end() && file->first.starts_with(below); ++file) {
    touch(file->first, false);
  }
}

// Name by name, so that no symbolic link is followed and no path is too long.
base::Fd FileWatch::open_folder(std::string_view folder) const {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  base::Fd fd(openat(root_, ".", flags));
  while (fd && !folder.empty()) {
    const std::size_t end = std::min(folder.find('/'), folder.size());
    fd = base::Fd(openat(fd.get(), std::string(folder.substr(0, end)).c_str(), flags));
    folder.remove_prefix(std::min(end + 1, folder.size()));
  }
  return fd;
}

std::optional<FileWatch::Signature> FileWatch::signature_of(int folder_fd, const char* name) {
  struct stat status {};
  if (fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  if (!S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) return std::nullopt;
  const std::int64_t modified = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  return Signature{status.st_ino, status.st_size, modified};
}

void FileWatch::touch(const std::string& path, bool written) {
  last_touch_ = loop_.now();
  if (touched_.empty()) first_touch_ = last_touch_;
  Touch& touch = touched_[path];
  touch.seen = last_touch_;
  touch.written = touch.written || written;
  if (!settling_) settling_ = loop_.at(last_touch_ + limits_.settle, [this] { look_whether_quiet(); });
}

base::TimePoint FileWatch::quiet_at() const {
  const auto quiet = touched_.size() > limits_.burst ? limits_.burst_settle : limits_.settle;
  return std::min(last_touch_ + quiet, first_touch_ + limits_.patience);
}

void FileWatch::look_whether_quiet() {
  settling_.reset();
  drain();
  if (touched_.empty()) return;
  const base::TimePoint due = quiet_at();
  if (loop_.now() >= due && unread_.empty()) return tell();
  if (!settling_) {
    settling_ = loop_.at(std::max(due, loop_.now()), [this] { look_whether_quiet(); });
  }
}

void FileWatch::finish() {
  drain();
  tell();
}

void FileWatch::tell() {
  std::vector<FileChange> changes;
  for (const auto& [path, touch] : std::exchange(touched_, {})) {
    const std::optional<Signature> now = signature_of(root_, path.c_str());
    const auto before = files_.find(path);
    const bool known = before != files_.end();
    if (!now) {
      if (!known) continue;
      files_.erase(before);
      changes.push_back({path, FileChange::Type::remove, touch.seen});
    } else if (!known) {
      files_.emplace(path, *now);
      changes.push_back({path, FileChange::Type::create, touch.seen});
    } else if (touch.written || *now != before->second) {
      before->second = *now;
      changes.push_back({path, FileChange::Type::modify, touch.seen});
    }
  }
  if (!changes.empty()) actions_.changed(std::move(changes));
}

}  // namespace duet::automation
