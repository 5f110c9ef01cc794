#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "automation/file_watch.h"

namespace duet::automation {
namespace {

constexpr std::uint32_t watched_events = IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_MOVED_FROM | IN_MODIFY |
                                         IN_CLOSE_WRITE | IN_ATTRIB | IN_EXCL_UNLINK | IN_ONLYDIR;
constexpr std::int64_t longest_ignore_file = 1024 * 1024;

bool is_folder(int folder_fd, const char* name, unsigned char type) {
  if (type != DT_UNKNOWN) return type == DT_DIR;
  struct stat status {};
  return fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode);
}

std::string named(const std::string& folder) { return folder.empty() ? "the project" : folder; }

bool is_missing(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

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

// None if there is none, or none that could be read: as for git, it says nothing then.
std::optional<std::string> text_of(int folder_fd, const char* name, int follow) {
  const base::Fd fd(openat(folder_fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | follow));
  struct stat status {};
  if (!fd || fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  std::string text(static_cast<std::size_t>(std::clamp<std::int64_t>(status.st_size, 0, longest_ignore_file)), '\0');
  std::size_t length = 0;
  for (ssize_t got = 1; got > 0 && length < text.size();
       length += static_cast<std::size_t>(std::max<ssize_t>(got, 0))) {
    got = read(fd.get(), text.data() + length, text.size() - length);
  }
  text.resize(length);
  return text;
}

}  // namespace

WatchScope FileWatch::scope_of(const WatchSettings& settings, WatchScope::Wanted wanted) const {
  WatchScope scope(settings, std::move(wanted));
  const base::Fd git(scope.heeds_git() ? openat(root_, ".git", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1);
  if (git) scope.git().exclude(text_of(git.get(), "info/exclude", 0));
  return scope;
}

void FileWatch::change(const WatchSettings& settings, WatchScope::Wanted wanted) {
  WatchScope scope = scope_of(settings, std::move(wanted));
  if (is_reading()) {
    next_ = std::move(scope);
  } else {
    apply(std::move(scope));
  }
}

void FileWatch::apply(WatchScope scope) {
  if (scope.heeds_git()) scope.git().take_files_of(scope_.git());
  begin(std::move(scope), {""});
}

// The queue goes on telling of what is watched already. What the new scope adds is read, as nothing new.
void FileWatch::begin(WatchScope scope, const std::set<std::string>& folders) {
  before_ = std::exchange(scope_, std::move(scope));
  chores_.push_back({.kind = Chore::Kind::prune});
  for (const std::string& folder : folders) read_later(folder, Strangers::may_be_new);
}

// A folder's file, before its names: is_new if it was not watched until now.
void FileWatch::read_ignores(int folder_fd, const std::string& folder, bool is_new) {
  if (!scope_.heeds_git()) return;
  const std::optional<std::string> text = text_of(folder_fd, ".gitignore", O_NOFOLLOW);
  if (scope_.git().has(folder, text)) return;
  if (is_new) return scope_.git().put(folder, text);
  stir(loop_.now());
  stale_.insert(folder);
}

// It is quiet: they are not being written. What they leave out from now on is forgotten, what they let in is read.
void FileWatch::read_ignores_again() {
  WatchScope scope = scope_;
  std::set<std::string> folders;
  for (const std::string& folder : std::exchange(stale_, {})) {
    const base::Fd fd = open_folder(folder, O_PATH);
    const std::optional<std::string> text = fd ? text_of(fd.get(), ".gitignore", O_NOFOLLOW) : std::nullopt;
    if (scope.git().has(folder, text)) continue;
    scope.git().put(folder, text);
    if (fd) folders.insert(folder);
  }
  if (!folders.empty()) begin(std::move(scope), folders);
  work();
}

FileWatch::Strangers FileWatch::oldest_strangers() const {
  Strangers oldest = listing_.names ? listing_.of.strangers : Strangers::are_new;
  for (const Chore& chore : chores_) {
    if (chore.kind == Chore::Kind::read) oldest = std::max(oldest, chore.strangers);
  }
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

void FileWatch::read_later(std::string folder, Strangers strangers) {
  if (!scope_.follows(folder)) return;
  chores_.push_back({.folder = std::move(folder), .strangers = strangers});
  work_soon();
}

// The first one, or a little of it.
void FileWatch::begin_chore() {
  if (chores_.front().kind == Chore::Kind::read) {
    Chore next = std::move(chores_.front());
    chores_.pop_front();
    begin_listing(std::move(next));
  } else if (!sweep(chores_.front())) {
    chores_.pop_front();
  }
  if (!is_reading()) all_is_read();
}

// False: it is done.
bool FileWatch::sweep(Chore& chore) {
  switch (chore.kind) {
    case Chore::Kind::forget:
      return forget_some(chore);
    case Chore::Kind::compare:
      return compare_some(chore);
    default:
      return prune_some(chore);
  }
}

bool FileWatch::forget_some(Chore& chore) {
  const std::string below = chore.folder + '/';
  const auto watch = watches_.lower_bound(below);
  if (watch != watches_.end() && watch->first.starts_with(below)) {
    unwatch(watch->first, watch->second);
    watches_.erase(watch);
    return true;
  }
  const auto file = chore.at ? files_.upper_bound(*chore.at) : files_.lower_bound(below);
  if (file == files_.end() || !file->first.starts_with(below)) return false;
  touch(file->first, false, chore.seen);
  chore.at = file->first;
  return true;
}

bool FileWatch::compare_some(Chore& chore) {
  const auto file = chore.at ? files_.upper_bound(*chore.at) : files_.begin();
  if (file == files_.end()) return false;
  touch(file->first, false, chore.seen);
  chore.at = file->first;
  return true;
}

bool FileWatch::prune_some(Chore& chore) {
  const auto prune = [&chore](auto& map, auto keeps, auto gone) {
    const auto next = chore.at ? map.upper_bound(*chore.at) : map.begin();
    if (next == map.end()) {
      chore.at.reset();
      return false;
    }
    chore.at = next->first;
    if (keeps(next->first)) return true;
    gone(*next);
    map.erase(next);
    return true;
  };
  const auto reaches_folder = [this](const std::string& folder) { return scope_.reaches_folder(folder); };
  const auto reaches = [this](const std::string& file) { return scope_.reaches(file); };
  bool more = false;
  if (chore.maps_done == 0) {
    more = prune(watches_, reaches_folder, [this](const auto& watch) { unwatch(watch.first, watch.second); });
  } else if (chore.maps_done == 1) {
    more = prune(blocked_, reaches_folder, [](const auto& /*folder*/) {});
  } else {
    more = prune(files_, reaches, [](const auto& /*file*/) {});
  }
  if (!more) ++chore.maps_done;
  return more || chore.maps_done < 3;
}

void FileWatch::read_name() {
  errno = 0;
  const dirent* const entry = readdir(listing_.names.get());
  if (entry == nullptr) {
    const int error = errno;
    const Listing read = std::exchange(listing_, {});
    if (error != 0) block(read.of, error);
    if (!is_reading()) all_is_read();
    return;
  }
  const std::string_view name = entry->d_name;
  if (name == "." || name == "..") return;
  read_entry(dirfd(listing_.names.get()), join_path(listing_.of.folder, name), entry->d_name, entry->d_type);
}

void FileWatch::all_is_read() {
  before_.reset();
  lost_watches_.clear();
  if (blocked_.empty()) reported_ = false;
  if (next_) apply(*std::exchange(next_, std::nullopt));
}

// First the watch, then what is ignored, then the names: what comes in between is seen twice rather than not at all.
bool FileWatch::begin_listing(Chore folder) {
  blocked_.erase(folder.folder);
  if (!queue_) open_queue();
  if (!queue_) return block(folder, queue_error_);
  base::Fd fd = open_folder(folder.folder, O_RDONLY);
  if (!fd) return block(folder, errno);
  const bool is_new = !watches_.contains(folder.folder) && !lost_watches_.contains(folder.folder);
  if (!add_watch(fd.get(), folder.folder)) return block(folder, errno);
  read_ignores(fd.get(), folder.folder, is_new);
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
    chores_.push_back(
        {.folder = path, .strangers = blocked == blocked_.end() ? listing_.of.strangers : blocked->second.strangers});
  } else if (scope_.tells(path)) {
    if (is_news(path)) return touch(path, false, loop_.now());
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
  const int watch = inotify_add_watch(queue_.get(), path.c_str(), watched_events);
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
bool FileWatch::block(const Chore& folder, int error) {
  if (is_missing(error) && !folder.folder.empty()) return false;
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
    begin_listing({.folder = first->first, .strangers = first->second.strangers});
    if (retrying_) return;
  }
  for (const auto& folder : blocked_) {
    if (can_pass(folder)) chores_.push_back({.folder = folder.first, .strangers = folder.second.strangers});
  }
  work_soon();
}

// A folder that was moved may be watched under its new name already, and it is the same watch.
void FileWatch::unwatch(const std::string& folder, int watch) {
  const auto found = folders_.find(watch);
  if (found == folders_.end() || found->second != folder) return;
  inotify_rm_watch(queue_.get(), watch);
  folders_.erase(found);
}

void FileWatch::forget_tree(const std::string& folder, base::TimePoint seen) {
  if (listing_.names && is_within(listing_.of.folder, folder)) listing_ = {};
  if (const auto watch = watches_.find(folder); watch != watches_.end()) {
    unwatch(folder, watch->second);
    watches_.erase(watch);
  }
  scope_.git().forget(folder);
  std::erase_if(blocked_, [&folder](const auto& blocked) { return is_within(blocked.first, folder); });
  if (blocked_.empty()) reported_ = false;
  chores_.push_back({.kind = Chore::Kind::forget, .folder = folder, .seen = seen});
  work_soon();
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
  if (!S_ISREG(status.st_mode)) return std::nullopt;
  const std::int64_t modified = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  return Signature{status.st_ino, status.st_size, modified};
}

}  // namespace duet::automation
