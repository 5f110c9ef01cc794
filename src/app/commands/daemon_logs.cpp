#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "app/client/reader_watch.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "app/project/running_daemon.h"
#include "app/project/state_folder.h"
#include "app/project/state_owner.h"
#include "app/settings/settings.h"
#include "app/view/log_view.h"

namespace duet::app {
namespace {

constexpr std::int64_t default_lines = 10;
constexpr off_t block = 65536;

/// The daemon's log as one goes on reading it, rotated or not.
class LogReader {
 public:
  LogReader(const StateFolder& folder, bool as_json) : folder_(folder), as_json_(as_json) { open(); }

  bool is_there() const { return static_cast<bool>(file_); }

  /// Skips everything but the last `count` lines.
  void skip_to_last(std::int64_t count) {
    struct stat status {};
    base::check_call(fstat(file_.get(), &status), "fstat");
    off_t start = status.st_size;
    std::int64_t ends_seen = 0;
    while (start > 0 && ends_seen <= count) {
      const off_t from = std::max<off_t>(0, start - block);
      std::string text(static_cast<std::size_t>(start - from), '\0');
      const ssize_t got = pread(file_.get(), text.data(), text.size(), from);
      if (got != static_cast<ssize_t>(text.size())) break;
      for (; start > from && ends_seen <= count; --start) {
        if (text[static_cast<std::size_t>(start - from - 1)] == '\n') ++ends_seen;
      }
    }
    if (ends_seen > count) ++start;  // behind the end of the line before
    lseek(file_.get(), start, SEEK_SET);
  }

  /// Prints what there is; then goes on with the next file if this one was rotated.
  void print_rest() {
    do {
      std::array<char, block> room;
      for (ssize_t count = 0; file_ && (count = read(file_.get(), room.data(), room.size())) > 0;) {
        print({room.data(), static_cast<std::size_t>(count)});
      }
    } while (was_replaced() && open());
  }

  /// A line without its end, such as a daemon leaves that is killed while it writes.
  void print_unfinished() {
    if (!unfinished_.empty()) print_text(log_line_as_json(std::exchange(unfinished_, {})) + '\n');
  }

 private:
  void print(std::string_view bytes) {
    if (!as_json_) {
      print_text(bytes);
      return;
    }
    unfinished_ += bytes;
    std::string out;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = unfinished_.find('\n', begin)) != unfinished_.npos; begin = end + 1) {
      out += log_line_as_json(std::string_view(unfinished_).substr(begin, end - begin)) + '\n';
    }
    unfinished_.erase(0, begin);
    print_text(out);
  }
  bool open() {
    file_.reset(openat(folder_.descriptor(), log_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    return static_cast<bool>(file_);
  }
  bool was_replaced() const {
    struct stat ours {};
    struct stat now {};
    if (fstatat(folder_.descriptor(), log_name, &now, AT_SYMLINK_NOFOLLOW) != 0) return false;
    return !file_ || fstat(file_.get(), &ours) != 0 || ours.st_ino != now.st_ino || ours.st_dev != now.st_dev;
  }

  const StateFolder& folder_;
  bool as_json_;
  base::Fd file_;
  std::string unfinished_;  // of JSON lines: what has no end yet
};

void wait_for_change(const base::Fd& notices, std::chrono::milliseconds patience) {
  std::array<pollfd, 2> wanted{
      {{.fd = notices.get(), .events = POLLIN, .revents = 0}, {.fd = STDOUT_FILENO, .events = 0, .revents = 0}}};
  if (poll(wanted.data(), wanted.size(), static_cast<int>(patience.count())) < 0 && errno != EINTR) {
    throw std::system_error(errno, std::generic_category(), "poll");
  }
  if (wanted[1].revents != 0) ReaderWatch::end_without_reader();
  std::array<char, 4096> room;
  while (read(notices.get(), room.data(), room.size()) > 0) {
  }
}

void follow(const StateFolder& folder, LogReader& log, std::chrono::milliseconds patience, bool limited) {
  const base::Fd notices(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  constexpr std::uint32_t changes = IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF;
  if (!notices || inotify_add_watch(notices.get(), folder.path_of(".").c_str(), changes) < 0) {
    throw Failure("the log cannot be followed here: " + std::generic_category().message(errno));
  }
  const auto deadline = std::chrono::steady_clock::now() + patience;
  log.print_rest();
  for (auto left = patience; !limited || left.count() > 0;) {
    wait_for_change(notices, limited ? left : std::chrono::milliseconds(-1));
    log.print_rest();
    left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  }
}

}  // namespace

int run_daemon_logs(const CommandLine& line) {
  const Project project = find_project(line.text("project"));
  const std::optional<StateFolder> folder = find_state(project, state_place(settings_places()));
  const Failure none("there is no log of a daemon in " + project.root + "; '" + std::string(line.program) +
                     " daemon start' starts one");
  if (!folder) throw none;
  if (const auto why = why_not_our_state(project, *folder); why && !DaemonLock::is_held(*folder)) throw Failure(*why);
  LogReader log(*folder, line.flag("json"));
  if (!log.is_there()) throw none;
  log.skip_to_last(line.number("lines").value_or(default_lines));
  if (!line.flag("follow")) {
    log.print_rest();
    log.print_unfinished();
    return 0;
  }
  const auto given = line.duration("timeout");
  follow(*folder, log, given.value_or(std::chrono::milliseconds(0)), given.has_value());
  return 0;
}

}  // namespace duet::app
