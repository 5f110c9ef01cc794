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

#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "app/project/state_folder.h"

namespace duet::app {
namespace {

constexpr std::int64_t default_lines = 10;
constexpr off_t block = 65536;

/// The daemon's log as one goes on reading it, rotated or not.
class LogReader {
 public:
  explicit LogReader(const StateFolder& folder) : folder_(folder) { open(); }

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
        print_text({room.data(), static_cast<std::size_t>(count)});
      }
    } while (was_replaced() && open());
  }

 private:
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
  base::Fd file_;
};

void wait_for_change(const base::Fd& notices, std::chrono::milliseconds patience) {
  pollfd wanted{.fd = notices.get(), .events = POLLIN, .revents = 0};
  if (poll(&wanted, 1, static_cast<int>(patience.count())) < 0 && errno != EINTR) {
    throw std::system_error(errno, std::generic_category(), "poll");
  }
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
  const std::optional<StateFolder> folder = StateFolder::find(project);
  const Failure none("there is no log of a daemon in " + project.root + "; '" + std::string(line.program) +
                     " daemon start' starts one");
  if (!folder) throw none;
  LogReader log(*folder);
  if (!log.is_there()) throw none;
  log.skip_to_last(line.number("lines").value_or(default_lines));
  if (!line.flag("follow")) {
    log.print_rest();
    return 0;
  }
  const auto given = line.duration("timeout");
  follow(*folder, log, given.value_or(std::chrono::milliseconds(0)), given.has_value());
  return 0;
}

}  // namespace duet::app
