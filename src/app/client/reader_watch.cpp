#include "app/client/reader_watch.h"

#include <signal.h>
#include <sys/epoll.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace duet::app {

ReaderWatch::ReaderWatch(transport::Loop& loop, int output, OnGone on_gone) : on_gone_(std::move(on_gone)) {
  try {
    watch_ = loop.watch(output, 0, *this);  // that it has failed or hung up is told without asking
  } catch (const std::system_error& error) {
    if (error.code().value() != EPERM) throw;  // of files
  }
}

void ReaderWatch::on_ready(std::uint32_t events) {
  if ((events & (EPOLLERR | EPOLLHUP)) == 0) return;
  watch_.cancel();
  on_gone_();
}

void ReaderWatch::end_without_reader() {
  raise(SIGPIPE);
  throw std::system_error(EPIPE, std::generic_category(), "writing to stdout");
}

}  // namespace duet::app
