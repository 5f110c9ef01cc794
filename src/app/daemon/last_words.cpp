#include "app/daemon/last_words.h"

#include <cxxabi.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <exception>
#include <new>
#include <span>
#include <string_view>

#include "duet/base/activity.h"
#include "duet/base/utc_text.h"
#include "duet/version.h"

namespace duet::app {
namespace {

// What ends a process that does not expect it, but for SIGKILL and what the daemon takes for a stop.
constexpr std::array told_signals{SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGABRT, SIGSYS,    SIGTRAP, SIGQUIT,
                                  SIGXCPU, SIGXFSZ, SIGALRM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF, SIGIO};
// They come of faults of our own, and cannot be ignored.
constexpr std::array fault_signals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
constexpr unsigned alarm_seconds = 5;

/// Text in memory that is there already; what does not fit is cut.
template <std::size_t room>
class Line {
 public:
  void clear() { size_ = 0; }
  std::string_view text() const { return {bytes_.data(), size_}; }
  void put(std::string_view text) {
    const std::size_t count = std::min(text.size(), room - size_);
    memcpy(bytes_.data() + size_, text.data(), count);
    size_ += count;
  }
  void put_number(std::uint64_t number, unsigned base = 10) {
    std::array<char, 20> digits;
    std::size_t first = digits.size();
    do {
      digits[--first] = "0123456789abcdef"[number % base];
      number /= base;
    } while (number != 0);
    put({&digits[first], digits.size() - first});
  }
  /// ` key="text"`, all of it on one line.
  void put_field(std::string_view key, std::string_view text) {
    put(" ");
    put(key);
    put("=\"");
    for (const char c : text) put(c < ' ' && c >= 0 ? " " : c == '"' || c == '\\' ? "'" : std::string_view(&c, 1));
    put("\"");
  }
  void put_field(std::string_view key, std::uint64_t number) {
    put(" ");
    put(key);
    put("=");
    put_number(number);
  }

 private:
  std::array<char, room> bytes_{};
  std::size_t size_ = 0;
};

/// All that the handler needs. Signal handlers are the process's, so this is too.
struct Preparations {
  std::array<char, PATH_MAX> log_path{};
  int record = -1;
  pid_t process = 0;
  std::array<struct sigaction, told_signals.size()> before{};
  std::terminate_handler terminate_before = nullptr;
  std::new_handler new_before = nullptr;
  stack_t stack_before{};
  alignas(16) std::array<char, 128 * 1024> stack{};

  std::atomic<pid_t> speaker = 0;
  std::atomic<std::uint64_t> memory_refusals = 0;
  Line<512> reason;
  Line<64> how;
  Line<2048> line;
  std::array<void*, 64> frames{};
};
constinit Preparations made;

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void compose(int signal, const siginfo_t* info, std::string_view time) {
  const char* const name = sigabbrev_np(signal);
  made.how.put("ended by SIG");
  made.how.put(name == nullptr ? "?" : name);
  made.line.put(time);
  made.line.put(" error ");
  made.line.put(made.how.text());
  if (!made.reason.text().empty()) made.line.put_field("reason", made.reason.text());
  if (info->si_code > 0) {  // else somebody sent it, and there is no address
    Line<20> address;
    address.put("0x");
    address.put_number(reinterpret_cast<std::uintptr_t>(info->si_addr), 16);
    made.line.put_field("address", address.text());
  } else if (info->si_pid != made.process) {
    made.line.put_field("sender", static_cast<std::uint64_t>(info->si_pid));
  }
  made.line.put_field("pid", static_cast<std::uint64_t>(made.process));
  made.line.put_field("version", kVersion);
  std::array<char, 16> thread{};
  prctl(PR_GET_NAME, thread.data());
  made.line.put_field("thread", thread.data());
  std::array<char, 256> ran;
  made.line.put_field("ran", {ran.data(), base::write_text(base::activity, ran)});
  if (made.memory_refusals > 0) made.line.put_field("memory_refusals", made.memory_refusals);
  made.line.put("\n");
}

// What read_last_end() reads, and all of it for people.
void write_record(std::string_view time) {
  static constinit Line<128> head;
  head.put_number(static_cast<std::uint64_t>(made.process));
  head.put(" ");
  head.put(time);
  head.put("\n");
  head.put(made.how.text());
  head.put("\n");
  [[maybe_unused]] const int cut = ftruncate(made.record, 0);
  write_all(made.record, head.text());
  write_all(made.record, made.line.text());
}

void speak(int signal, const siginfo_t* info) {
  std::array<char, base::UtcText::size> time;
  base::UtcText().write(time.data(), std::chrono::system_clock::now());
  compose(signal, info, {time.data(), time.size()});
  const int opened =
      made.log_path[0] == '\0' ? -1 : open(made.log_path.data(), O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC);
  const int log = opened < 0 ? STDERR_FILENO : opened;
  write_all(log, made.line.text());
  write_record({time.data(), time.size()});
  ::signal(SIGALRM, SIG_DFL);
  alarm(alarm_seconds);
  const int count = backtrace(made.frames.data(), static_cast<int>(made.frames.size()));
  backtrace_symbols_fd(made.frames.data(), count, log);
  backtrace_symbols_fd(made.frames.data(), count, made.record);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void handle(int signal, siginfo_t* info, void* /*context*/) {
  const int error = errno;
  const pid_t self = gettid();
  pid_t speaker = 0;
  const bool first = made.speaker.compare_exchange_strong(speaker, self);
  while (!first && speaker != self) pause();  // another thread is at its last words, and ends us all
  if (first) speak(signal, info);
  for (std::size_t i = 0; i < told_signals.size(); ++i) sigaction(told_signals[i], &made.before[i], nullptr);
  if (is_ignored(signal)) ::signal(signal, SIG_DFL);
  errno = error;
  raise(signal);  // blocked until this returns: then it ends the process where the fault was
}

[[noreturn]] void tell_uncaught() {
  const std::type_info* const type = abi::__cxa_current_exception_type();
  made.reason.clear();
  made.reason.put(type == nullptr ? "std::terminate" : "uncaught exception, ");
  if (type != nullptr) {
    std::array<char, 128> name;
    made.reason.put({name.data(), base::write_text({.callback = type}, name)});
    try {
      throw;
    } catch (const std::exception& fault) {
      made.reason.put(": ");
      made.reason.put(fault.what());
    } catch (...) {
      // The type is all there is to tell.
    }
  }
  std::abort();
}

void count_refusal() {
  ++made.memory_refusals;
  throw std::bad_alloc();
}

void install() {
  stack_t stack{};
  stack.ss_sp = made.stack.data();
  stack.ss_size = made.stack.size();
  sigaltstack(&stack, &made.stack_before);
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  sigdelset(&action.sa_mask, SIGALRM);  // which ends what hangs
  for (std::size_t i = 0; i < told_signals.size(); ++i) {
    const int signal = told_signals[i];
    const bool stays = is_ignored(signal) && std::ranges::find(fault_signals, signal) == fault_signals.end();
    sigaction(signal, stays ? nullptr : &action, &made.before[i]);
  }
  made.terminate_before = std::set_terminate(tell_uncaught);
  made.new_before = std::set_new_handler(count_refusal);
}

}  // namespace

LastWords::LastWords(const StateFolder& folder, const std::string& log_path)
    : record_(openat(folder.descriptor(), last_words_name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  if (!record_) throw folder.unusable(last_words_name, errno);
  made.log_path = {};
  log_path.copy(made.log_path.data(), made.log_path.size() - 1);
  made.record = record_.get();
  made.process = getpid();
  made.speaker = 0;
  backtrace(made.frames.data(), 1);  // the first call loads a library
  install();
}

void LastWords::forget_earlier() const { [[maybe_unused]] const int cut = ftruncate(record_.get(), 0); }

LastWords::~LastWords() {
  std::set_new_handler(made.new_before);
  std::set_terminate(made.terminate_before);
  for (std::size_t i = 0; i < told_signals.size(); ++i) sigaction(told_signals[i], &made.before[i], nullptr);
  sigaltstack(&made.stack_before, nullptr);
}

}  // namespace duet::app
