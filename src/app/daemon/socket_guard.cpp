#include "app/daemon/socket_guard.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace duet::app {

SocketGuard::SocketGuard(transport::Loop& loop, base::Log& log, const Project& project, const StateFolder& folder,
                         std::function<bool()> look, Limits limits)
    : loop_(loop), look_(std::move(look)), limits_(limits), notices_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  if (notices_ && watch_folders(project, folder)) {
    loop_.watch(notices_.get(), EPOLLIN, *this);
    return;
  }
  problem_ = std::string("changes of the state folder are not reported here (") + std::strerror(errno) + ')';
  log.warn("The state folder is looked at every two seconds", {{"reason", problem_}});
  notices_.reset();
  look_after(limits_.poll);
}

SocketGuard::~SocketGuard() {
  if (notices_) loop_.unwatch(notices_.get(), *this);
  if (timer_) loop_.cancel(*timer_);
}

bool SocketGuard::watch_folders(const Project& project, const StateFolder& folder) {
  constexpr std::uint32_t itself = IN_DELETE_SELF | IN_MOVE_SELF;
  constexpr std::uint32_t content = IN_DELETE | IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO;
  const std::string above = "/proc/self/fd/" + std::to_string(project.directory.get()) + "/.aiwg";
  return inotify_add_watch(notices_.get(), folder.path_of(".").c_str(), itself | content) >= 0 &&
         inotify_add_watch(notices_.get(), above.c_str(), itself) >= 0;
}

void SocketGuard::on_ready(std::uint32_t) {
  alignas(inotify_event) std::array<char, 4096> room;
  while (read(notices_.get(), room.data(), room.size()) > 0) {
  }
  if (!timer_) look_after(limits_.settle);
}

void SocketGuard::look_after(base::Duration wait) {
  timer_ = loop_.after(wait, [this] {
    timer_.reset();
    const bool content = look_();
    if (!notices_ || !content) look_after(limits_.poll);
  });
}

}  // namespace duet::app
