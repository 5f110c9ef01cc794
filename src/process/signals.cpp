#include "process/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

namespace duet::process {

Signals::Signals(transport::Loop& loop, std::initializer_list<int> signals, std::function<void(int)> on_signal)
    : on_signal_(std::move(on_signal)) {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : signals) sigaddset(&wanted, signal);
  pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  signals_.reset(base::check_call(signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC), "signalfd"));
  watch_ = loop.watch(signals_.get(), EPOLLIN, *this);
}

void Signals::on_ready(std::uint32_t) {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof info) == sizeof info) on_signal_(static_cast<int>(info.ssi_signo));
}

}  // namespace duet::process
