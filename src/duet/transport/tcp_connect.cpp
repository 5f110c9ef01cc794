#include "duet/transport/tcp_connect.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "duet/base/blocked_signals.h"
#include "duet/transport/tcp_address.h"

namespace duet::transport {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds between_attempts{250};  // as in RFC 8305

/// What a resolver says; a thread that asks it may outlive who waits for it.
struct Lookup {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_done = false;
  int error = 0;  // of getaddrinfo()
  std::vector<TcpAddress> found;
};

int resolve(const std::string& host, int flags, std::vector<TcpAddress>& found) {
  addrinfo wanted{};
  wanted.ai_flags = flags;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &wanted, &list);
  if (error != 0) return error;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    if (const auto address = TcpAddress::from(*entry->ai_addr)) found.push_back(*address);
  }
  freeaddrinfo(list);
  return found.empty() ? EAI_NONAME : 0;
}

void resolve_elsewhere(const std::string& host, const std::shared_ptr<Lookup>& lookup) {
  const base::BlockedSignals blocked;
  std::thread([host, lookup] {
    std::vector<TcpAddress> found;
    const int error = resolve(host, AI_ADDRCONFIG, found);
    const std::lock_guard lock(lookup->mutex);
    lookup->is_done = true;
    lookup->error = error;
    lookup->found = std::move(found);
    lookup->changed.notify_all();
  }).detach();
}

// An address is its own answer, and takes no thread.
std::vector<TcpAddress> look_up(const std::string& host, Clock::time_point deadline) {
  std::vector<TcpAddress> found;
  if (resolve(host, AI_NUMERICHOST, found) == 0) return found;
  const auto lookup = std::make_shared<Lookup>();
  resolve_elsewhere(host, lookup);
  std::unique_lock lock(lookup->mutex);
  if (!lookup->changed.wait_until(lock, deadline, [&] { return lookup->is_done; })) {
    throw Unreachable("nobody has told in time where " + host + " is", true);
  }
  if (lookup->error != 0) throw Unreachable(host + ": " + gai_strerror(lookup->error), false);
  return std::move(lookup->found);
}

struct Attempt {
  base::Fd socket;  // none: it has failed
  TcpAddress to;
  int error = 0;
};

Attempt begin_attempt(const TcpAddress& to) {
  const int family = to.is_v6() ? AF_INET6 : AF_INET;
  Attempt attempt{base::Fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), to};
  if (!attempt.socket && errno != EAFNOSUPPORT) base::check_call(-1, "socket");
  const int result = attempt.socket ? connect(attempt.socket.get(), to.get(), to.size()) : -1;
  if (result == 0 || errno == EINPROGRESS || errno == EINTR) return attempt;
  attempt.error = errno;
  attempt.socket.reset();
  return attempt;
}

// A port that nobody listens at may be the very one that the kernel gave to us: then we have reached ourselves.
int outcome_of(const base::Fd& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  base::check_call(getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size), "SO_ERROR");
  if (error != 0) return error;
  return TcpAddress::of(socket.get()) == TcpAddress::of_peer(socket.get()) ? ECONNREFUSED : 0;
}

/// Attempts at several addresses, of which the first that succeeds counts.
class Race {
 public:
  Race(std::vector<TcpAddress> addresses, Clock::time_point deadline)
      : addresses_(std::move(addresses)), deadline_(deadline) {}

  base::Fd run() {
    for (;;) {
      if (next_ < addresses_.size() && (!has_pending() || Clock::now() >= next_at_)) begin_next();
      if (next_ == addresses_.size() && !has_pending()) throw Unreachable(told(), false);
      if (Clock::now() >= deadline_) throw Unreachable(told(), true);
      if (std::optional<base::Fd> winner = wait()) return std::move(*winner);
    }
  }

 private:
  bool has_pending() const {
    return std::ranges::any_of(attempts_, [](const Attempt& attempt) { return static_cast<bool>(attempt.socket); });
  }

  void begin_next() {
    TcpAddress to = addresses_[next_++];
    attempts_.push_back(begin_attempt(to));
    next_at_ = Clock::now() + between_attempts;
  }

  std::optional<base::Fd> wait() {
    std::vector<pollfd> wanted;
    for (const Attempt& attempt : attempts_) {
      wanted.push_back({.fd = attempt.socket.get(), .events = POLLOUT, .revents = 0});  // poll() passes over -1
    }
    const Clock::time_point until = next_ < addresses_.size() ? std::min(next_at_, deadline_) : deadline_;
    const auto left = std::chrono::ceil<milliseconds>(std::max(until - Clock::now(), Clock::duration::zero()));
    constexpr milliseconds longest_poll = std::chrono::hours(1);
    if (has_pending()) poll(wanted.data(), wanted.size(), static_cast<int>(std::min(left, longest_poll).count()));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].revents == 0) continue;
      attempts_[i].error = outcome_of(attempts_[i].socket);
      if (attempts_[i].error == 0) return std::move(attempts_[i].socket);
      attempts_[i].socket.reset();
    }
    return std::nullopt;
  }

  std::string told() const {
    std::string text;
    for (const Attempt& attempt : attempts_) {
      const std::string came = attempt.socket ? "no answer" : std::generic_category().message(attempt.error);
      text += (text.empty() ? "" : ", ") + attempt.to.text() + ": " + came;
    }
    return text;
  }

  std::vector<TcpAddress> addresses_;
  Clock::time_point deadline_;
  std::size_t next_ = 0;
  Clock::time_point next_at_;
  std::vector<Attempt> attempts_;
};

}  // namespace

base::Fd connect_tcp(const std::string& host, std::uint16_t port, milliseconds patience) {
  const Clock::time_point deadline = Clock::now() + std::min<milliseconds>(patience, std::chrono::hours(24 * 366));
  std::vector<TcpAddress> addresses = look_up(host, deadline);
  for (TcpAddress& address : addresses) address = address.with_port(port);
  base::Fd socket = Race(std::move(addresses), deadline).run();
  const int on = 1;
  base::check_call(setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
  return socket;
}

}  // namespace duet::transport
