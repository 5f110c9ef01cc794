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
constexpr std::size_t queue_bytes = 64 * 1024;
constexpr std::size_t most_reported = 32 * 1024 * 1024;  // bytes that wait to be looked at

bool has_gone(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

}  // namespace

std::string_view name_of(FileChange::Type type) {
  constexpr std::array<std::string_view, 3> names{"file.create", "file.modify", "file.delete"};
  return names.at(static_cast<std::size_t>(type));
}

FileWatch::FileWatch(transport::Loop& loop, int root, const WatchSettings& settings, Actions actions,
                     WatchLimits limits)
    : loop_(loop),
      root_(root),
      actions_(std::move(actions)),
      limits_(limits),
      scope_(scope_of(settings, actions_.wanted)) {
  chores_.push_back({.strangers = Strangers::are_old});
  work();
}

FileWatch::~FileWatch() = default;

void FileWatch::work() {
  const base::TimePoint until = loop_.now() + limits_.slice;
  std::size_t entries = limits_.entries_a_slice;
  while (step(entries)) {
    if (entries == 0 || loop_.now() >= until) return work_soon();
  }
  rest();
}

void FileWatch::work_soon() {
  if (!working_) working_ = loop_.at(loop_.now(), [this] { work(); });
}

// False: there is nothing to do.
bool FileWatch::step(std::size_t& entries) {
  if (!reports_.empty()) {
    take(next_said());
  } else if (listing_.names) {
    read_name();
    --entries;
  } else if (!chores_.empty()) {
    if (chores_.front().kind == Chore::Kind::read) --entries;
    begin_chore();
  } else if (is_telling_) {
    tell_one();
  } else {
    return false;
  }
  return true;
}

void FileWatch::rest() {
  const bool waits = !touched_.empty() || !stale_.empty();
  if (waits && !quiet_timer_) {
    quiet_timer_ = loop_.at(std::max(quiet_at(), loop_.now()), [this] { look_whether_quiet(); });
  }
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

void FileWatch::on_ready(std::uint32_t) { drain(); }

// Only the hearing is done at once: when something was said tells whose doing it may be.
void FileWatch::drain() {
  alignas(inotify_event) std::array<char, queue_bytes> buffer;  // not initialised: the kernel fills in what is used
  while (queue_) {
    const ssize_t count = read(queue_.get(), buffer.data(), buffer.size());
    if (count <= 0) break;
    reports_.push_back({{buffer.data(), buffer.data() + count}, loop_.now()});
    reported_bytes_ += static_cast<std::size_t>(count);
    if (reported_bytes_ > most_reported) start_over();
  }
  if (!reports_.empty()) work_soon();
}

FileWatch::Said FileWatch::next_said() {
  Report& report = reports_.front();
  inotify_event event{};
  std::memcpy(&event, report.bytes.data() + report.taken, sizeof event);
  const char* const name = report.bytes.data() + report.taken + sizeof event;
  Said said{event.wd, event.mask, event.len == 0 ? std::string() : std::string(name), report.seen};
  report.taken += sizeof event + event.len;
  if (report.taken >= report.bytes.size()) {
    reported_bytes_ -= report.bytes.size();
    reports_.pop_front();
  }
  return said;
}

void FileWatch::take(const Said& said) {
  if ((said.mask & IN_Q_OVERFLOW) != 0) return start_over();
  const auto found = folders_.find(said.watch);
  if (found == folders_.end()) return;
  if ((said.mask & IN_IGNORED) != 0) {
    const auto watch = watches_.find(found->second);
    if (watch != watches_.end() && watch->second == said.watch) watches_.erase(watch);
    folders_.erase(found);
    return;
  }
  if (said.name.empty()) {  // of the folder itself: its parent has something to say as well, if that is watched
    if ((said.mask & IN_ATTRIB) != 0 && found->second.empty()) read_blocked("");
    return;
  }
  const std::string path = join_path(found->second, said.name);
  if ((said.mask & IN_ISDIR) != 0) return take_folder(said, path);
  if (said.name == ".gitignore" && scope_.heeds_git()) {
    stir(said.seen);
    stale_.insert(found->second);
  }
  if (scope_.tells(path)) touch(path, (said.mask & (appeared | IN_MODIFY)) != 0, said.seen);
}

void FileWatch::take_folder(const Said& said, const std::string& path) {
  if ((said.mask & vanished) != 0) forget_tree(path, said.seen);
  if ((said.mask & appeared) != 0) return read_later(path, Strangers::are_new);
  if ((said.mask & IN_ATTRIB) != 0) read_blocked(path);
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
  const bool pruning =
      std::any_of(chores_.begin(), chores_.end(), [](const Chore& chore) { return chore.kind == Chore::Kind::prune; });
  close_queue();
  reports_.clear();
  reported_bytes_ = 0;
  folders_.clear();
  lost_watches_.merge(std::exchange(watches_, {}));
  chores_.clear();
  listing_ = {};
  if (pruning) chores_.push_back({.kind = Chore::Kind::prune});
  chores_.push_back({.kind = Chore::Kind::compare, .seen = loop_.now()});
  read_later("", strangers);
}

void FileWatch::touch(const std::string& path, bool written, base::TimePoint seen) {
  stir(seen);
  Touch& touch = touched_[path];
  touch.seen = seen;
  touch.written = touch.written || written;
}

void FileWatch::stir(base::TimePoint seen) {
  if (touched_.empty() && stale_.empty()) first_touch_ = seen;
  last_touch_ = std::max(last_touch_, seen);
  if (!quiet_timer_) quiet_timer_ = loop_.at(last_touch_ + limits_.quiet, [this] { look_whether_quiet(); });
}

base::TimePoint FileWatch::quiet_at() const {
  const auto quiet = touched_.size() > limits_.burst ? limits_.burst_quiet : limits_.quiet;
  return std::min(last_touch_ + quiet, first_touch_ + limits_.patience);
}

// While there is work, rest() comes back to it. But there may always be something to hear.
void FileWatch::look_whether_quiet() {
  drain();
  const bool impatient = loop_.now() >= first_touch_ + limits_.patience;
  if (is_reading() || is_telling_ || (!reports_.empty() && !impatient)) return work_soon();
  if (loop_.now() < quiet_at()) return rest();
  if (!stale_.empty()) return read_ignores_again();
  if (touched_.empty()) return;
  is_telling_ = true;
  telling_ = std::exchange(touched_, {});
  work();
}

void FileWatch::tell_one() {
  if (telling_.empty()) return end_telling();
  const auto taken = telling_.extract(telling_.begin());
  const std::string& path = taken.key();
  if (!scope_.reaches(path)) {
    files_.erase(path);
    return;
  }
  const std::size_t slash = path.rfind('/');
  const bool in_root = slash == path.npos;
  if (!in_root && (!told_fd_ || path.compare(0, slash, told_folder_) != 0)) {
    told_folder_ = path.substr(0, slash);
    told_fd_ = open_folder(told_folder_, O_PATH);
  }
  std::optional<Signature> now;
  if (in_root || told_fd_) {
    errno = 0;
    now = signature_of(in_root ? root_ : told_fd_.get(), path.c_str() + (in_root ? 0 : slash + 1));
  }
  if (!now && errno != 0 && !has_gone(errno)) {
    unseen_.insert_or_assign(path, taken.mapped());
    return;
  }
  if (const auto type = compare(path, taken.mapped().written, now)) {
    has_told_ = true;
    actions_.changed({path, *type, taken.mapped().seen});
  }
}

// What became of the file, if anything; from now on it is what it is now.
std::optional<FileChange::Type> FileWatch::compare(const std::string& path, bool written,
                                                   const std::optional<Signature>& now) {
  const auto before = files_.find(path);
  const bool known = before != files_.end();
  if (!now) {
    if (!known) return std::nullopt;
    files_.erase(before);
    return FileChange::Type::remove;
  }
  if (!known) {
    files_.emplace(path, *now);
    return FileChange::Type::create;
  }
  if (!written && *now == before->second) return std::nullopt;
  before->second = *now;
  return FileChange::Type::modify;
}

void FileWatch::end_telling() {
  is_telling_ = false;
  told_fd_.reset();
  if (!unseen_.empty()) look_again();
  if (std::exchange(has_told_, false)) actions_.settled();
}

// After a while: something is wanting.
void FileWatch::look_again() {
  const bool alone = touched_.empty();
  touched_.merge(std::exchange(unseen_, {}));
  last_touch_ = loop_.now();
  if (alone) first_touch_ = last_touch_;
  quiet_timer_ = loop_.after(limits_.retry, [this] { look_whether_quiet(); });
}

}  // namespace duet::automation
