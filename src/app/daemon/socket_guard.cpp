#include "app/daemon/socket_guard.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace duet::app {
namespace {

constexpr std::uint32_t of_folder = IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::uint32_t of_content = IN_DELETE | IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO;

bool is_link(int folder, const char* path) {
  struct stat status {};
  return fstatat(folder, path, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

std::size_t name_begin(const std::string& path) { return path.rfind('/') + 1; }  // npos + 1 is 0

}  // namespace

SocketGuard::SocketGuard(transport::Loop& loop, base::Log& log, const Project& project, const StateFolder& folder,
                         std::function<bool()> look, Limits limits)
    : loop_(loop),
      log_(log),
      look_(std::move(look)),
      limits_(limits),
      notices_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      project_(base::duplicate(project.directory.get())),
      elsewhere_(!folder.elsewhere().empty()) {
  if (notices_ && watch_folders(project, folder)) {
    watch_ = loop_.watch(notices_.get(), EPOLLIN, *this);
    if (is_linked()) look_after(limits_.poll);
  } else {
    poll_because("the state folder");
  }
}

// At each look: it may have become a link meanwhile.
bool SocketGuard::is_linked() const {
  return !elsewhere_ && (is_link(project_.get(), ".aiwg") || is_link(project_.get(), state_path));
}

bool SocketGuard::watch_folders(const Project& project, const StateFolder& folder) {
  const std::string& elsewhere = folder.elsewhere();
  const std::string above = elsewhere_ ? elsewhere.substr(0, elsewhere.rfind('/'))
                                       : "/proc/self/fd/" + std::to_string(project.directory.get()) + "/.aiwg";
  return inotify_add_watch(notices_.get(), folder.path_of(".").c_str(), of_folder | of_content) >= 0 &&
         inotify_add_watch(notices_.get(), above.c_str(), of_folder) >= 0;
}

void SocketGuard::watch_socket(const std::string& path) {
  socket_path_ = path;
  if (!notices_ || watch_socket_folder()) return;
  watch_.cancel();
  poll_because("the socket's folder");
}

// Again after each look: it may be another folder by now.
bool SocketGuard::watch_socket_folder() {
  const std::size_t name = name_begin(socket_path_);
  const std::string folder = name == 0 ? "." : socket_path_.substr(0, name);
  const int watch = inotify_add_watch(notices_.get(), folder.c_str(), of_folder | of_content | IN_MASK_CREATE);
  if (watch < 0) return errno == EEXIST;  // as before, or it is the state folder
  if (socket_folder_ >= 0) inotify_rm_watch(notices_.get(), socket_folder_);
  socket_folder_ = watch;
  return true;
}

void SocketGuard::poll_because(const std::string& what) {
  problem_ =
      "changes of " + what + " are not reported here (" + std::strerror(errno) + "): it is looked at now and then";
  log_.warn(problem_);
  notices_.reset();
  if (!timer_) look_after(limits_.poll);
}

void SocketGuard::on_ready(std::uint32_t) {
  alignas(inotify_event) std::array<char, 4096> room;
  bool changed = false;
  for (ssize_t count = 0; (count = read(notices_.get(), room.data(), room.size())) > 0;) {
    changed = concerns_us({room.data(), static_cast<std::size_t>(count)}) || changed;
  }
  if (!changed || looks_soon_) return;
  looks_soon_ = true;
  look_after(limits_.quiet);
}

bool SocketGuard::concerns_us(std::string_view notices) const {
  while (!notices.empty()) {
    inotify_event notice{};
    std::memcpy(&notice, notices.data(), sizeof notice);
    const char* const name = notice.len == 0 ? "" : notices.data() + sizeof notice;
    if (notice.wd != socket_folder_ || notice.len == 0 || socket_path_.substr(name_begin(socket_path_)) == name) {
      return true;
    }
    notices.remove_prefix(sizeof notice + notice.len);
  }
  return false;
}

void SocketGuard::look_after(base::Duration wait) {
  timer_ = loop_.after(wait, [this] { look(); });
}

void SocketGuard::look() {
  looks_soon_ = false;
  const bool content = look_();
  const bool watched = notices_ && (socket_path_.empty() || watch_socket_folder());
  if (!content || !watched || is_linked()) look_after(limits_.poll);
}

}  // namespace duet::app
