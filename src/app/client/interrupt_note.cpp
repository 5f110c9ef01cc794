#include "app/client/interrupt_note.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace duet::app {
namespace {

// What the handler may touch: plain memory that was filled before it was installed.
std::array<char, 2048> interrupt_text;
std::size_t interrupt_size = 0;

extern "C" void end_with_note(int signal) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, interrupt_text.data(), interrupt_size);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(signal, &usual, nullptr);
  raise(signal);  // blocked until the handler returns
}

}  // namespace

InterruptNote::InterruptNote(const std::string& note) {
  struct sigaction before {};
  if (note.empty() || sigaction(SIGINT, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return;
  // The terminal has just shown ^C.
  const std::string text = (isatty(STDERR_FILENO) == 1 ? "\n" : "") + note + '\n';
  interrupt_size = std::min(text.size(), interrupt_text.size());
  std::copy_n(text.begin(), interrupt_size, interrupt_text.begin());
  struct sigaction action {};
  action.sa_handler = end_with_note;
  installed_ = sigaction(SIGINT, &action, nullptr) == 0;
}

InterruptNote::~InterruptNote() {
  if (!installed_) return;
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGINT, &usual, nullptr);
}

}  // namespace duet::app
