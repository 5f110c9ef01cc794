#include "duet/base/log_sink.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace duet::base {

namespace {

/// A descriptor that takes whole lines.
class LineWriter {
 public:
  explicit LineWriter(Fd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }

  std::size_t write(std::string_view lines) {
    // A line that broke off half-way, on a full disk say, must not have the next one glued to it.
    if (torn_ && write_some("\n") == 0) return 0;
    const std::size_t written = write_some(lines);
    torn_ = written > 0 && written < lines.size() && lines[written - 1] != '\n';
    return written;
  }

 private:
  std::size_t write_some(std::string_view text) {
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t written = ::write(fd_.get(), text.data() + done, text.size() - done);
      if (written > 0) {
        done += static_cast<std::size_t>(written);
      } else if (written == 0 || !may_go_on(errno)) {
        break;
      }
    }
    return done;
  }

  bool may_go_on(int error) const {
    if (error == EINTR) return true;
    return error == EAGAIN && await_ready(fd_.get(), POLLOUT);
  }

  Fd fd_;
  bool torn_ = false;
};

class StreamSink final : public LogSink {
 public:
  StreamSink(Fd fd, bool coloured) : writer_(std::move(fd)), coloured_(coloured) {}

  std::size_t write(std::string_view lines) override { return writer_.write(lines); }
  bool coloured() const override { return coloured_; }

 private:
  LineWriter writer_;
  bool coloured_;
};

Fd open_for_append(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for its reader.
  return Fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
}

class FileSink final : public LogSink {
 public:
  FileSink(std::string path, Fd fd, LogFileLimits limits)
      : path_(std::move(path)), limits_(std::move(limits)), writer_(std::move(fd)) {}

  std::size_t write(std::string_view lines) override { return tend(lines.size()) ? writer_.write(lines) : 0; }
  bool joins_lines() const override { return limits_.joins_lines; }

 private:
  /// Sees to it that the next line goes to the right file. False: there is none to write to.
  bool tend(std::size_t incoming) {
    if (limits_.makes_no_file && *limits_.makes_no_file) return true;
    struct stat mine {};
    if (::fstat(writer_.fd(), &mine) != 0 || !S_ISREG(mine.st_mode)) return true;
    if (mine.st_nlink == 0) return reopen();
    const auto size = static_cast<std::uint64_t>(mine.st_size);
    const bool full = size > 0 && size + incoming > limits_.rotate_at;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_look_ && !(full && may_rotate_)) return true;
    next_look_ = now + limits_.look_every;
    if (full) {
      // If it cannot be rotated now, another try with every line would only cost time.
      may_rotate_ = rotate(mine);
    } else if (!is_current(mine)) {
      reopen();
    }
    return true;
  }

  bool is_current(const struct stat& mine) const {
    struct stat there {};
    return ::stat(path_.c_str(), &there) == 0 && there.st_ino == mine.st_ino && there.st_dev == mine.st_dev;
  }

  bool reopen() {
    Fd fd = open_for_append(path_);
    if (!fd) return false;
    writer_ = LineWriter(std::move(fd));
    may_rotate_ = true;
    return true;
  }

  /// The lock is on the file that has the name, so two processes can only hold it for the same rotation; the second
  /// finds that the name has gone on to another file. It is given back with the old descriptor.
  bool rotate(const struct stat& mine) {
    if (::flock(writer_.fd(), LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK;
    const bool name_is_free = !is_current(mine) || shift_backups();
    if (name_is_free && reopen()) return true;
    ::flock(writer_.fd(), LOCK_UN);
    return false;
  }

  bool shift_backups() const {
    for (int to = limits_.keep; to > 0; --to) {
      const std::string from = to == 1 ? path_ : backup(to - 1);
      // A backup that cannot be moved on must not be overwritten either.
      if (::rename(from.c_str(), backup(to).c_str()) != 0 && errno != ENOENT) return false;
    }
    return true;
  }

  std::string backup(int number) const { return path_ + "." + std::to_string(number); }

  std::string path_;
  LogFileLimits limits_;
  LineWriter writer_;
  std::chrono::steady_clock::time_point next_look_{};
  bool may_rotate_ = true;
};

/// `/proc/self/fd/7/name`: in a folder that is held open, wherever it is moved.
bool is_in_open_folder(std::string_view path) {
  constexpr std::string_view open_files = "/proc/self/fd/";
  return path.starts_with(open_files) && path.find('/', open_files.size()) != path.npos;
}

/// So that backups lie beside the file itself, wherever a symbolic link to it may be, and whatever the working
/// directory will be then.
std::string real_path(const std::string& path) {
  if (is_in_open_folder(path)) return path;
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr), &std::free);
  return real ? real.get() : path;
}

}  // namespace

std::unique_ptr<LogSink> stream_sink(Fd fd, bool coloured) {
  return std::make_unique<StreamSink>(std::move(fd), coloured);
}

std::unique_ptr<LogSink> stderr_sink(bool coloured) { return stream_sink(duplicate(STDERR_FILENO), coloured); }

OpenedLogFile open_log_file(const std::string& path, LogFileLimits limits) {
  Fd fd = open_for_append(path);
  if (!fd) return {nullptr, std::generic_category().message(errno)};
  return {std::make_unique<FileSink>(real_path(path), std::move(fd), std::move(limits)), {}};
}

}  // namespace duet::base
