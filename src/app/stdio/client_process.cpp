#include "app/stdio/client_process.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <limits>
#include <utility>

namespace duet::app {
namespace {

// Close-on-exec by itself. The system call and not glibc's function, which older ones lack.
base::Fd open_process(std::int64_t pid) {
  if (pid < 1 || pid > std::numeric_limits<pid_t>::max()) return base::Fd();
  return base::Fd(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
}

}  // namespace

ClientProcess::ClientProcess(transport::Loop& loop, std::function<void()> on_ended)
    : loop_(loop), on_ended_(std::move(on_ended)) {}

bool ClientProcess::watch(std::int64_t pid) {
  forget();
  process_ = open_process(pid);
  if (process_) watch_ = loop_.watch(process_.get(), EPOLLIN, *this);
  return static_cast<bool>(process_);
}

void ClientProcess::on_ready(std::uint32_t) {
  forget();
  on_ended_();
}

void ClientProcess::forget() {
  watch_.cancel();
  process_.reset();
}

}  // namespace duet::app
