#pragma once

#include <signal.h>

namespace duet::base {

/// Threads that are started in its scope get no signals: those are for the program's main thread, and neither SIGPIPE
/// nor SIGXFSZ may end a program because of what a helper writes. Faults are told all the same: blocked, they would end
/// the program without its last words.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP}) sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace duet::base
