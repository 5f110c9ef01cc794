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
bool shows_interrupt = false;  // a terminal has just shown ^C
const LinePrefixer* interrupted_lines = nullptr;

// It is set for one signal: the second one has its usual effect, also while this waits for a reader.
extern "C" void end_with_note(int signal) {
  [[maybe_unused]] ssize_t written = 0;
  if (shows_interrupt) written = write(STDERR_FILENO, "\n", 1);
  if (interrupted_lines != nullptr) interrupted_lines->write_unfinished(STDOUT_FILENO);
  written = write(STDERR_FILENO, interrupt_text.data(), interrupt_size);
  raise(signal);
}

}  // namespace

InterruptNote::InterruptNote(const std::string& note, const LinePrefixer* lines) {
  struct sigaction before {};
  if (note.empty() || sigaction(SIGINT, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return;
  shows_interrupt = isatty(STDERR_FILENO) == 1;
  interrupted_lines = lines;
  const std::string text = note + '\n';
  interrupt_size = std::min(text.size(), interrupt_text.size());
  std::copy_n(text.begin(), interrupt_size, interrupt_text.begin());
  struct sigaction action {};
  action.sa_handler = end_with_note;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_NODEFER;
  installed_ = sigaction(SIGINT, &action, nullptr) == 0;
}

InterruptNote::~InterruptNote() {
  if (!installed_) return;
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  sigaction(SIGINT, &usual, nullptr);
}

}  // namespace duet::app
