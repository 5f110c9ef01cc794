#include "app/client/reader_watch.h"

#include <signal.h>
#include <sys/epoll.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace duet::app {

ReaderWatch::ReaderWatch(transport::Loop& loop, int output, OnGone on_gone)
    : loop_(loop), output_(output), on_gone_(std::move(on_gone)) {
  try {
    loop_.watch(output_, 0, *this);  // that it has failed or hung up is told without asking
    watching_ = true;
  } catch (const std::system_error& error) {
    if (error.code().value() != EPERM) throw;  // of files
  }
}

ReaderWatch::~ReaderWatch() { stop(); }

void ReaderWatch::stop() {
  if (std::exchange(watching_, false)) loop_.unwatch(output_, *this);
}

void ReaderWatch::on_ready(std::uint32_t events) {
  if ((events & (EPOLLERR | EPOLLHUP)) == 0) return;
  stop();
  on_gone_();
}

void ReaderWatch::end_without_reader() {
  raise(SIGPIPE);
  throw std::system_error(EPIPE, std::generic_category(), "writing to stdout");
}

}  // namespace duet::app
