#include "app/daemon/service_manager.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "app/project/failure.h"

namespace duet::app {
namespace {

constexpr int first_passed = 3;

std::string take_variable(const char* name) {
  const char* const found = std::getenv(name);
  std::string value = found == nullptr ? "" : found;
  unsetenv(name);
  return value;
}

template <typename Number>
Number number_in(const std::string& text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

int option_of(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

bool is_listening_unix_socket(int fd) {
  return option_of(fd, SO_DOMAIN) == AF_UNIX && option_of(fd, SO_TYPE) == SOCK_STREAM &&
         option_of(fd, SO_ACCEPTCONN) == 1;
}

}  // namespace

ServiceManager::ServiceManager() {
  const std::string pid = take_variable("LISTEN_PID");
  const std::string count = take_variable("LISTEN_FDS");
  take_variable("LISTEN_FDNAMES");
  address_ = take_variable("NOTIFY_SOCKET");
  const std::string self = std::to_string(getpid());
  if (pid == self) listeners_ = number_in<int>(count);
  has_listener_ = listeners_ > 0;
  const std::string every = take_variable("WATCHDOG_USEC");
  const std::string watched = take_variable("WATCHDOG_PID");
  const auto limit = number_in<std::int64_t>(every);
  if (address_.empty()) return;
  socket_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (limit > 1 && (watched.empty() || watched == self)) watchdog_ = std::chrono::microseconds(limit / 2);
}

base::Fd ServiceManager::take_listener() {
  if (std::exchange(listeners_, 0) <= 0) return {};
  base::Fd listener(first_passed);
  if (!is_listening_unix_socket(listener.get())) {
    throw Failure("the socket passed by LISTEN_FDS is no listening Unix stream socket: use ListenStream= with a path");
  }
  fcntl(listener.get(), F_SETFD, FD_CLOEXEC);
  passed_ = base::duplicate(listener.get());
  return listener;
}

void ServiceManager::hand_on() const {
  if (!address_.empty()) setenv("NOTIFY_SOCKET", address_.c_str(), 1);
  if (watchdog_) setenv("WATCHDOG_USEC", std::to_string(watchdog_->count() * 2).c_str(), 1);
  if (!passed_) return;
  base::check_call(dup2(passed_.get(), first_passed), "dup2");
  setenv("LISTEN_FDS", "1", 1);
  setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
}

void ServiceManager::tell(std::string_view state) const {
  sockaddr_un to{};
  if (address_.empty() || address_.size() >= sizeof to.sun_path) return;
  to.sun_family = AF_UNIX;
  std::copy(address_.begin(), address_.end(), to.sun_path);
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  sendto(socket_.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&to),
         size);
}

}  // namespace duet::app
