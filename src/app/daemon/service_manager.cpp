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

bool is_listening_stream(int fd) { return option_of(fd, SO_TYPE) == SOCK_STREAM && option_of(fd, SO_ACCEPTCONN) == 1; }
bool is_unix(int fd) { return option_of(fd, SO_DOMAIN) == AF_UNIX; }
bool is_tcp(int fd) { return option_of(fd, SO_DOMAIN) == AF_INET || option_of(fd, SO_DOMAIN) == AF_INET6; }

// LISTEN_FDNAMES has them with colons between; who passes none, or too few, leaves the rest without.
std::vector<std::string> names_of(int count, const std::string& text) {
  std::vector<std::string> names;
  std::size_t at = 0;
  for (int i = 0; i < count; ++i) {
    const std::size_t end = std::min(text.find(':', at), text.size());
    names.push_back(text.substr(std::min(at, text.size()), end - std::min(at, text.size())));
    at = std::min(end + 1, text.size());
  }
  return names;
}

Failure refused_socket(int fd, const std::string& name) {
  return Failure("socket " + std::to_string(fd) + " of LISTEN_FDS" + (name.empty() ? "" : " (" + name + ")") +
                 " is refused: pass one Unix stream socket that listens (ListenStream= with a path), and one of TCP "
                 "for HTTP with FileDescriptorName=http, and one for TLS with FileDescriptorName=tls");
}

}  // namespace

ServiceManager::ServiceManager() {
  const std::string pid = take_variable("LISTEN_PID");
  const std::string count = take_variable("LISTEN_FDS");
  const std::string names = take_variable("LISTEN_FDNAMES");
  address_ = take_variable("NOTIFY_SOCKET");
  const std::string self = std::to_string(getpid());
  constexpr int most_passed = 64;
  if (pid == self) names_ = names_of(std::clamp(number_in<int>(count), 0, most_passed), names);
  const std::string every = take_variable("WATCHDOG_USEC");
  const std::string watched = take_variable("WATCHDOG_PID");
  const auto limit = number_in<std::int64_t>(every);
  if (address_.empty()) return;
  socket_.reset(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (limit > 1 && (watched.empty() || watched == self)) watchdog_ = std::chrono::microseconds(limit / 2);
}

ServiceManager::Listeners ServiceManager::take_listeners() {
  Listeners listeners;
  if (std::exchange(taken_, true)) return listeners;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const int fd = first_passed + static_cast<int>(i);
    const bool is_tls = names_[i] == "tls";
    base::Fd& into = is_unix(fd) ? listeners.unix : is_tls ? listeners.tls : listeners.http;
    const bool is_known = is_unix(fd) || (is_tcp(fd) && (is_tls || names_[i] == "http"));
    if (!is_listening_stream(fd) || !is_known || into) throw refused_socket(fd, names_[i]);
    into.reset(fd);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  for (std::size_t i = 0; i < names_.size(); ++i)
    passed_.push_back(base::duplicate(first_passed + static_cast<int>(i)));
  return listeners;
}

void ServiceManager::hand_on() const {
  if (!address_.empty()) setenv("NOTIFY_SOCKET", address_.c_str(), 1);
  if (watchdog_) setenv("WATCHDOG_USEC", std::to_string(watchdog_->count() * 2).c_str(), 1);
  if (passed_.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < passed_.size(); ++i) {
    base::check_call(dup2(passed_[i].get(), first_passed + static_cast<int>(i)), "dup2");
    names += (i == 0 ? "" : ":") + names_[i];
  }
  setenv("LISTEN_FDS", std::to_string(passed_.size()).c_str(), 1);
  setenv("LISTEN_FDNAMES", names.c_str(), 1);
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
