#include "app/client/live_screen.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <string>

namespace duet::app {
namespace {

constexpr std::string_view enter_screen = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view leave_screen = "\x1b[?25h\x1b[?1049l";
constexpr std::array ending_signals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// What the handlers may touch.
volatile sig_atomic_t screen_waker = -1;

void put_on_screen(std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
}

void handle_signal(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(signal, &action, nullptr);
}

void raise_as_usual(int signal) {
  handle_signal(signal, SIG_DFL);
  sigset_t only;
  sigset_t before;
  sigemptyset(&only);
  sigaddset(&only, signal);
  raise(signal);
  sigprocmask(SIG_UNBLOCK, &only, &before);  // now it acts
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

void wake_screen() {
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = write(screen_waker, &byte, 1);
}

extern "C" void end_screen(int signal) {
  put_on_screen(leave_screen);
  raise_as_usual(signal);
}

extern "C" void stop_screen(int signal) {
  put_on_screen(leave_screen);
  raise_as_usual(signal);
  handle_signal(signal, stop_screen);  // it goes on, or could not be stopped
  put_on_screen(enter_screen);
  wake_screen();
}

extern "C" void renew_screen(int signal) {
  if (signal == SIGCONT) put_on_screen(enter_screen);
  wake_screen();
}

}  // namespace

LiveScreen::LiveScreen(transport::Loop& loop) {
  std::array<int, 2> ends{};
  base::check_call(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), "a pipe");
  woken_ = base::Fd(ends[0]);
  waking_ = base::Fd(ends[1]);
  watch_ = loop.watch(woken_.get(), EPOLLIN, *this);
  screen_waker = waking_.get();
  for (const int signal : ending_signals) handle_signal(signal, end_screen);
  handle_signal(SIGTSTP, stop_screen);
  handle_signal(SIGCONT, renew_screen);
  handle_signal(SIGWINCH, renew_screen);
  put_on_screen(enter_screen);
}

LiveScreen::~LiveScreen() {
  put_on_screen(leave_screen);
  for (const int signal : ending_signals) handle_signal(signal, SIG_DFL);
  for (const int signal : {SIGTSTP, SIGCONT, SIGWINCH}) handle_signal(signal, SIG_DFL);
}

LiveScreen::Size LiveScreen::size() {
  struct winsize size {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {size.ws_col, size.ws_row};
}

void LiveScreen::paint(std::string_view text) {
  needs_paint_ = false;
  std::string frame = "\x1b[H";
  if (text.ends_with('\n')) text.remove_suffix(1);  // the last row must not scroll
  for (const char c : text) {
    if (c == '\n') frame += "\x1b[K\r";
    frame += c;
  }
  frame += "\x1b[K\x1b[J";
  base::check_call(base::write_all(STDOUT_FILENO, frame) ? 0 : -1, "writing to stdout");
}

void LiveScreen::on_ready(std::uint32_t /*events*/) {
  std::array<char, 64> room;
  while (read(woken_.get(), room.data(), room.size()) > 0) needs_paint_ = true;
}

}  // namespace duet::app
