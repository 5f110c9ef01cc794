#include "app/daemon/socket_guard.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace duet::app {
namespace {

constexpr std::uint32_t of_folder = IN_DELETE_SELF | IN_MOVE_SELF;
constexpr std::uint32_t of_content = IN_DELETE | IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO;

}  // namespace

SocketGuard::SocketGuard(transport::Loop& loop, base::Log& log, const Project& project, const StateFolder& folder,
                         std::function<bool()> look, Limits limits)
    : loop_(loop),
      log_(log),
      look_(std::move(look)),
      limits_(limits),
      notices_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (notices_ && watch_folders(project, folder)) {
    loop_.watch(notices_.get(), EPOLLIN, *this);
  } else {
    poll_because("the state folder");
  }
}

SocketGuard::~SocketGuard() {
  if (notices_) loop_.unwatch(notices_.get(), *this);
  if (timer_) loop_.cancel(*timer_);
}

bool SocketGuard::watch_folders(const Project& project, const StateFolder& folder) {
  const std::string above = "/proc/self/fd/" + std::to_string(project.directory.get()) + "/.aiwg";
  return inotify_add_watch(notices_.get(), folder.path_of(".").c_str(), of_folder | of_content) >= 0 &&
         inotify_add_watch(notices_.get(), above.c_str(), of_folder) >= 0;
}

void SocketGuard::watch_socket(const std::string& path) {
  if (!notices_) return;
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  socket_name_ = path.substr(slash + 1);
  socket_folder_ = inotify_add_watch(notices_.get(), folder.c_str(), of_folder | of_content | IN_MASK_CREATE);
  if (socket_folder_ >= 0 || errno == EEXIST) return;  // EEXIST: it is the state folder
  loop_.unwatch(notices_.get(), *this);
  poll_because("the socket's folder");
}

void SocketGuard::poll_because(const std::string& what) {
  problem_ =
      "changes of " + what + " are not reported here (" + std::strerror(errno) + "): it is looked at now and then";
  log_.warn(problem_);
  notices_.reset();
  look_after(limits_.poll);
}

void SocketGuard::on_ready(std::uint32_t) {
  alignas(inotify_event) std::array<char, 4096> room;
  bool changed = false;
  for (ssize_t count = 0; (count = read(notices_.get(), room.data(), room.size())) > 0;) {
    changed = concerns_us({room.data(), static_cast<std::size_t>(count)}) || changed;
  }
  if (changed && !timer_) look_after(limits_.settle);
}

bool SocketGuard::concerns_us(std::string_view notices) const {
  while (!notices.empty()) {
    inotify_event notice{};
    std::memcpy(&notice, notices.data(), sizeof notice);
    const char* const name = notice.len == 0 ? "" : notices.data() + sizeof notice;
    if (notice.wd != socket_folder_ || notice.len == 0 || name == socket_name_) return true;
    notices.remove_prefix(sizeof notice + notice.len);
  }
  return false;
}

void SocketGuard::look_after(base::Duration wait) {
  timer_ = loop_.after(wait, [this] {
    timer_.reset();
    const bool content = look_();
    if (!notices_ || !content) look_after(limits_.poll);
  });
}

}  // namespace duet::app
