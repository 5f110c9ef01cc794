#include "app/client/daemon_stop.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <system_error>

#include <boost/json/array.hpp>
#include <tl/expected.hpp>

#include "app/client/interrupt_note.h"
#include "app/project/failure.h"
#include "app/words/duration.h"
#include "duet/base/fd.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using Clock = std::chrono::steady_clock;
using boost::json::object;
using boost::json::value;

constexpr std::chrono::seconds between_words{1};
constexpr std::chrono::milliseconds moment{900};

// One line of a terminal that is written anew each time; elsewhere a line that is written once.
class WaitingLine {
 public:
  explicit WaitingLine(const DaemonClient& daemon) : daemon_(daemon), is_terminal_(isatty(STDERR_FILENO) == 1) {}
  WaitingLine(const WaitingLine&) = delete;
  WaitingLine& operator=(const WaitingLine&) = delete;
  ~WaitingLine() {
    if (is_terminal_ && was_shown_) write_aside("\r\x1b[K");
  }

  void show(const std::string& text, std::chrono::seconds since) {
    if (is_terminal_) {
      write_aside("\r\x1b[K" + text + ", " + readable_duration(since) + " so far");
    } else if (!was_shown_) {
      daemon_.tell_user(text);
    }
    was_shown_ = true;
  }

 private:
  static void write_aside(const std::string& text) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  }

  const DaemonClient& daemon_;
  bool is_terminal_;
  bool was_shown_ = false;
};

using Answer = std::optional<value>;

struct Late {};

// None: the daemon refuses, or does not answer any more.
tl::expected<Answer, Late> ask(DaemonClient& daemon, std::string_view method, std::string_view params,
                               base::Duration patience) {
  if (!daemon.is_connected()) return std::nullopt;
  const peer::Outcome outcome = daemon.ask(method, params, patience);
  if (outcome.cause == peer::Outcome::Cause::timed_out) return tl::unexpected(Late());
  if (outcome.cause != peer::Outcome::Cause::answered) return std::nullopt;
  return rpc::parse_value(outcome.result);
}

tl::expected<std::vector<std::string>, Late> ask_for_tasks(DaemonClient& daemon, base::Duration patience) {
  std::vector<std::string> ids;
  const auto answer = ask(daemon, "task.list", R"({"state":"running","limit":1000})", patience);
  if (!answer) return tl::unexpected(answer.error());
  if (!*answer || !(*answer)->is_array()) return ids;
  for (const value& task : (*answer)->get_array()) ids.emplace_back(task.at("id").as_string());
  std::ranges::reverse(ids);  // the newest came first
  return ids;
}

// Empty: it is too slow to tell.
std::string what_it_waits_for(DaemonClient& daemon) {
  const auto tasks = ask_for_tasks(daemon, moment);
  if (!tasks) return {};
  if (!tasks->empty()) return "for " + in_words(*tasks);
  const auto servers = ask(daemon, "lsp.list", {}, moment);
  if (!servers) return {};
  const bool has_servers = *servers && !(*servers)->at("servers").as_array().empty();
  return has_servers ? "for its language servers" : "for its last answers";
}

// The daemon's own word, since the other end of the socket may be a service manager's.
pid_t pid_of(DaemonClient& daemon) { return daemon.call("daemon.status").at("pid").to_number<pid_t>(); }

/// Waits so long at most; true: the daemon has ended.
using HasEnded = std::function<bool(std::chrono::milliseconds)>;

HasEnded end_of_process(const base::Fd& process) {
  return [&process](std::chrono::milliseconds patience) {
    pollfd wanted{.fd = process.get(), .events = POLLIN, .revents = 0};
    const int count = poll(&wanted, 1, static_cast<int>(patience.count()));
    return count > 0;
  };
}

// A daemon of another machine ends its connections when it ends. To connect again could start another one, where a
// service manager listens.
HasEnded end_of_connection(DaemonClient& daemon) {
  return [&daemon](std::chrono::milliseconds patience) {
    daemon.client().wait_for([] { return false; }, patience);
    if (daemon.is_connected()) return false;
    if (!daemon.was_cut()) return true;
    throw Failure("the daemon was asked to stop, but the connection was lost before it was seen to end",
                  exit_code::no_answer);
  };
}

void wait_for_end(DaemonClient& daemon, const HasEnded& has_ended, base::Duration patience) {
  WaitingLine line(daemon);
  std::string known;
  const Clock::time_point begun = Clock::now();
  for (;;) {
    const base::Duration waited = Clock::now() - begun;
    const base::Duration left = std::clamp<base::Duration>(patience - waited, base::Duration::zero(), between_words);
    if (has_ended(std::chrono::ceil<std::chrono::milliseconds>(left))) return;
    const base::Duration now = Clock::now() - begun;
    if (now >= patience) return;
    if (now < between_words) continue;
    if (const std::string told = what_it_waits_for(daemon); !told.empty()) known = told;
    if (!known.empty()) line.show("waiting " + known, std::chrono::floor<std::chrono::seconds>(now));
  }
}

void wait_for_end_or_fail(DaemonClient& daemon, pid_t pid, const HasEnded& has_ended, base::Duration patience) {
  const InterruptNote note(
      "the daemon stops all the same: 'duet-rpc daemon status' tells what it waits for, 'duet-rpc daemon stop --force' "
      "ends its tasks at once");
  wait_for_end(daemon, has_ended, patience);
  if (has_ended(std::chrono::milliseconds(0))) return;
  throw Failure("the daemon, pid " + std::to_string(pid) +
                    ", is still stopping; 'duet-rpc daemon stop --force' ends its tasks at once",
                exit_code::no_answer);
}

// None if it has ended.
base::Fd process_of(pid_t pid, const char* consequence) {
  base::Fd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!process && errno != ESRCH) {
    throw Failure("cannot wait for the daemon, pid " + std::to_string(pid) + consequence + ": " +
                  std::generic_category().message(errno));
  }
  return process;
}

}  // namespace

std::vector<std::string> running_tasks(DaemonClient& daemon) {
  return ask_for_tasks(daemon, daemon.patience()).value_or(std::vector<std::string>());
}

std::string in_words(const std::vector<std::string>& ids) {
  constexpr std::size_t most_named = 4;
  std::string out;
  for (std::size_t i = 0; i < std::min(ids.size(), most_named); ++i) {
    const bool is_last = i + 1 == ids.size();
    out += (i == 0 ? "" : is_last ? " and " : ", ") + ids[i];
  }
  if (ids.size() > most_named) out += " and " + std::to_string(ids.size() - most_named) + " more";
  return out;
}

pid_t stop_daemon(DaemonClient& daemon, const object& params, base::Duration patience) {
  const pid_t pid = pid_of(daemon);
  const base::Fd process = daemon.is_far() ? base::Fd() : process_of(pid, ", so it was not asked to stop");
  daemon.call("daemon.stop", params);
  if (!daemon.is_far() && !process) return pid;
  wait_for_end_or_fail(daemon, pid, daemon.is_far() ? end_of_connection(daemon) : end_of_process(process), patience);
  return pid;
}

void wait_until_stopped(DaemonClient& daemon, pid_t pid, base::Duration patience) {
  const base::Fd process = process_of(pid, "");
  if (process) wait_for_end_or_fail(daemon, pid, end_of_process(process), patience);
}

}  // namespace duet::app
