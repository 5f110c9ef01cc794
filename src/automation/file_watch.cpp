#include "automation/file_watch.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

namespace duet::automation {
namespace {

constexpr std::uint32_t appeared = IN_CREATE | IN_MOVED_TO;
constexpr std::uint32_t vanished = IN_DELETE | IN_MOVED_FROM;
constexpr std::uint32_t watched =
    appeared | vanished | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_EXCL_UNLINK | IN_ONLYDIR;
constexpr std::size_t queue_bytes = 64 * 1024;

bool is_folder(int folder_fd, const char* name, unsigned char type) {
  if (type != DT_UNKNOWN) return type == DT_DIR;
  struct stat status {};
  return fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

std::string named(const std::string& folder) { return folder.empty() ? "the project" : folder; }

bool has_gone(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

std::string fault_of(const std::string& folder, int error) {
  switch (error) {
    case EACCES:
      return "no permission to read " + named(folder) + ": changes in it are not noticed";
    case ENOSPC:
      return "the limit of watched folders is reached: changes in " + named(folder) +
             " and in others are not noticed; raise fs.inotify.max_user_watches, or set [watch] paths or ignore";
    default:
      return named(folder) + " cannot be watched: " + std::generic_category().message(error) +
             ": changes in it are not noticed until it can be";
  }
}

}  // namespace

std::string_view name_of(FileChange::Type type) {
  constexpr std::array<std::string_view, 3> names{"file.create", "file.modify", "file.delete"};
  return names.at(static_cast<std::size_t>(type));
}

FileWatch::FileWatch(transport::Loop& loop, int root, const WatchSettings& settings, Actions actions,
                     WatchLimits limits)
    : loop_(loop), root_(root), actions_(std::move(actions)), limits_(limits), scope_(settings, actions_.wanted) {
  unread_.push_back({.folder = "", .strangers = Strangers::are_old});
  read_portion();
}

FileWatch::~FileWatch() = default;

void FileWatch::change(const WatchSettings& settings, WatchScope::Wanted wanted) {
  WatchScope scope(settings, std::move(wanted));
  if (is_reading()) {
    next_ = std::move(scope);
  } else {
    apply(std::move(scope));
  }
}

// The queue goes on telling of what is watched already. What the new scope adds is read, as nothing new.
void FileWatch::apply(WatchScope scope) {
  before_ = std::exchange(scope_, std::move(scope));
  std::erase_if(files_, [this](const auto& file) { return !scope_.reaches(file.first); });
  std::erase_if(touched_, [this](const auto& file) { return !scope_.reaches(file.first); });
  std::erase_if(blocked_, [this](const auto& folder) { return !scope_.reaches_folder(folder.first); });
  std::erase_if(watches_, [this](const auto& watch) {
    if (scope_.reaches_folder(watch.first)) return false;
    unwatch(watch.first, watch.second);
    return true;
  });
  read_later("", Strangers::may_be_new);
}

void FileWatch::open_queue() {
  queue_.reset(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  queue_error_ = queue_ ? 0 : errno;
  if (!queue_) return;
  try {
    queue_watch_ = loop_.watch(queue_.get(), EPOLLIN, *this);
  } catch (const std::system_error& error) {
    queue_error_ = error.code().value();
    queue_.reset();
  }
}

void FileWatch::close_queue() {
  queue_watch_.cancel();
  queue_.reset();
}

FileWatch::Strangers FileWatch::oldest_strangers() const {
  Strangers oldest = listing_.names ? listing_.of.strangers : Strangers::are_new;
  for (const Unread& folder : unread_) oldest = std::max(oldest, folder.strangers);
  return oldest;
}

std::string FileWatch::problem() const {
  if (queue_error_ == EMFILE) {
    return "no file is watched: too many programs watch files, or too many are open (fs.inotify.max_user_instances)";
  }
  if (queue_error_ != 0) return "no file is watched: " + std::generic_category().message(queue_error_);
  if (!blocked_.empty()) return fault_of(blocked_.begin()->first, blocked_.begin()->second.error);
  if (oldest_strangers() == Strangers::are_new && !next_) return {};
  return "the project is still being read: changes in folders that are to come are not noticed";
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
  if (name.empty()) {  // of the folder itself: its parent has something to say as well, if that is watched
    if ((event.mask & IN_ATTRIB) != 0 && found->second.empty()) read_blocked("");
    return;
  }
  const std::string path = join_path(found->second, name);
  if ((event.mask & IN_ISDIR) != 0) return take_folder(event.mask, path);
  if (scope_.tells(path)) touch(path, (event.mask & (appeared | IN_MODIFY)) != 0);
}

void FileWatch::take_folder(std::uint32_t mask, const std::string& path) {
  if ((mask & vanished) != 0) forget_tree(path);
  if ((mask & appeared) != 0) return read_later(path, Strangers::are_new);
  if ((mask & IN_ATTRIB) != 0) read_blocked(path);
}

// They may be readable now: a folder that may be entered again is the way to those below it.
void FileWatch::read_blocked(const std::string& within) {
  for (const auto& [folder, blocked] : blocked_) {
    if (is_within(folder, within)) read_later(folder, blocked.strangers);
  }
}

// Nobody knows what was lost. What is there is compared with what was.
void FileWatch::start_over() {
  const Strangers strangers = oldest_strangers();
  close_queue();
  folders_.clear();
  watches_.clear();
  unread_.clear();
  listing_ = {};
  for (const auto& [path, signature] : files_) touch(path, false);
  read_later("", strangers);
}

void FileWatch::read_later(std::string folder, Strangers strangers) {
  if (!scope_.follows(folder)) return;
  unread_.push_back({std::move(folder), strangers});
  if (!reading_) reading_ = loop_.at(loop_.now(), [this] { read_portion(); });
}

void FileWatch::read_portion() {
  for (std::size_t left = limits_.entries_a_turn; left > 0 && is_reading(); --left) {
    if (!listing_.names) {
      Unread next = std::move(unread_.front());
      unread_.pop_front();
      begin_listing(std::move(next));
      continue;
    }
    errno = 0;
    const dirent* const entry = readdir(listing_.names.get());
    if (entry == nullptr) {
      const Listing read = std::exchange(listing_, {});
      if (errno != 0) block(read.of, errno);
      continue;
    }
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    read_entry(dirfd(listing_.names.get()), join_path(listing_.of.folder, name), entry->d_name, entry->d_type);
  }
  if (!is_reading()) return all_is_read();
  reading_ = loop_.at(loop_.now(), [this] { read_portion(); });
}

void FileWatch::all_is_read() {
  before_.reset();
  if (blocked_.empty()) reported_ = false;
  if (next_) apply(*std::exchange(next_, std::nullopt));
}

// First the watch, then the names: what comes in between is seen twice rather than not at all.
bool FileWatch::begin_listing(Unread folder) {
  blocked_.erase(folder.folder);
  if (!queue_) open_queue();
  if (!queue_) return block(folder, queue_error_);
  base::Fd fd = open_folder(folder.folder, O_RDONLY);
  if (!fd) return block(folder, errno);
  if (!add_watch(fd.get(), folder.folder)) return block(folder, errno);
  listing_.names.reset(fdopendir(fd.get()));
  if (!listing_.names) return block(folder, errno);
  [[maybe_unused]] const int owned = fd.release();
  listing_.of = std::move(folder);
  return true;
}

void FileWatch::read_entry(int folder_fd, const std::string& path, const char* name, unsigned char type) {
  if (is_folder(folder_fd, name, type)) {
    if (!scope_.follows(path)) return;
    const auto blocked = blocked_.find(path);
    unread_.push_back({path, blocked == blocked_.end() ? listing_.of.strangers : blocked->second.strangers});
  } else if (scope_.tells(path)) {
    if (is_news(path)) return touch(path, false);
    if (files_.contains(path)) return;
    if (const std::optional<Signature> signature = signature_of(folder_fd, name)) files_.emplace(path, *signature);
  }
}

// A file that is listed.
bool FileWatch::is_news(const std::string& file) const {
  if (listing_.of.strangers == Strangers::are_new) return true;
  const bool may_be_new = listing_.of.strangers == Strangers::may_be_new && before_ && !files_.contains(file);
  return may_be_new && before_->reaches(file);
}

bool FileWatch::add_watch(int folder_fd, const std::string& folder) {
  const std::string path = "/proc/self/fd/" + std::to_string(folder_fd);
  const int watch = inotify_add_watch(queue_.get(), path.c_str(), watched);
  if (watch < 0) return false;
  folders_[watch] = folder;
  watches_[folder] = watch;
  return true;
}

// By itself: one that may not be read is tried again when its permissions change, of which nobody tells for the root.
bool FileWatch::can_pass(const BlockedFolders::value_type& folder) {
  const int error = folder.second.error;
  return folder.first.empty() || (error != EACCES && error != EPERM);
}

// One that has gone is its parent's to tell of.
bool FileWatch::block(const Unread& folder, int error) {
  if (has_gone(error) && !folder.folder.empty()) return false;
  const auto blocked = blocked_.insert_or_assign(folder.folder, Blocked{error, folder.strangers}).first;
  if (!reported_) {
    reported_ = true;
    actions_.problem(problem());
  }
  if (!retrying_ && can_pass(*blocked)) retrying_ = loop_.after(limits_.retry, [this] { try_again(); });
  return false;
}

// One of them first: while that does not work, the others need not be tried.
void FileWatch::try_again() {
  while (!is_reading()) {
    const auto first = std::find_if(blocked_.begin(), blocked_.end(), can_pass);
    if (first == blocked_.end()) return;
    begin_listing({first->first, first->second.strangers});
    if (retrying_) return;
  }
  for (const auto& folder : blocked_) {
    if (can_pass(folder)) unread_.push_back({folder.first, folder.second.strangers});
  }
  if (!reading_) reading_ = loop_.at(loop_.now(), [this] { read_portion(); });
}

// A folder that was moved may be watched under its new name already, and it is the same watch.
void FileWatch::unwatch(const std::string& folder, int watch) {
  const auto found = folders_.find(watch);
  if (found == folders_.end() || found->second != folder) return;
  inotify_rm_watch(queue_.get(), watch);
  folders_.erase(found);
}

void FileWatch::forget_tree(const std::string& folder) {
  if (listing_.names && is_within(listing_.of.folder, folder)) listing_ = {};
  for (auto watch = watches_.lower_bound(folder); watch != watches_.end() && watch->first.starts_with(folder);) {
    if (!is_within(watch->first, folder)) {
      ++watch;
      continue;
    }
    unwatch(watch->first, watch->second);
    watch = watches_.erase(watch);
  }
  std::erase_if(blocked_, [&folder](const auto& blocked) { return is_within(blocked.first, folder); });
  if (blocked_.empty()) reported_ = false;
  const std::string below = folder + '/';
  for (auto file = files_.lower_bound(below); file != files_.end() && file->first.starts_with(below); ++file) {
    touch(file->first, false);
  }
}

// Name by name, so that no symbolic link is followed and no path is too long.
base::Fd FileWatch::open_folder(std::string_view folder, int access) const {
  const int flags = access | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
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
  if (!quiet_timer_) quiet_timer_ = loop_.at(last_touch_ + limits_.quiet, [this] { look_whether_quiet(); });
}

base::TimePoint FileWatch::quiet_at() const {
  const auto quiet = touched_.size() > limits_.burst ? limits_.burst_quiet : limits_.quiet;
  return std::min(last_touch_ + quiet, first_touch_ + limits_.patience);
}

void FileWatch::look_whether_quiet() {
  drain();
  if (touched_.empty()) return;
  const base::TimePoint due = quiet_at();
  if (loop_.now() >= due && !is_reading()) return tell();
  if (!quiet_timer_) {
    quiet_timer_ = loop_.at(std::max(due, loop_.now()), [this] { look_whether_quiet(); });
  }
}

// After a while: something is wanting.
void FileWatch::look_again(std::map<std::string, Touch> touched) {
  touched_ = std::move(touched);
  first_touch_ = last_touch_ = loop_.now();
  if (!quiet_timer_) quiet_timer_ = loop_.after(limits_.retry, [this] { look_whether_quiet(); });
}

void FileWatch::tell() {
  std::vector<FileChange> changes;
  std::map<std::string, Touch> unseen;
  std::string folder;  // that is open, unless it is the root
  base::Fd folder_fd;
  for (const auto& [path, touch] : std::exchange(touched_, {})) {
    const std::size_t slash = path.rfind('/');
    const bool in_root = slash == path.npos;
    if (!in_root && (!folder_fd || path.compare(0, slash, folder) != 0)) {
      folder = path.substr(0, slash);
      folder_fd = open_folder(folder, O_PATH);
    }
    std::optional<Signature> now;
    if (in_root || folder_fd) {
      errno = 0;
      now = signature_of(in_root ? root_ : folder_fd.get(), path.c_str() + (in_root ? 0 : slash + 1));
    }
    if (!now && errno != 0 && !has_gone(errno)) {
      unseen.emplace(path, touch);
      continue;
    }
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
  if (!unseen.empty()) look_again(std::move(unseen));
  if (!changes.empty()) actions_.changed(std::move(changes));
}

}  // namespace duet::automation
