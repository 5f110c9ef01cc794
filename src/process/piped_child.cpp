#include "process/piped_child.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "duet/transport/fd_channel.h"

namespace duet::process {

// The other constructor has made a whole object, so whatever is thrown here, the destructor ends the program.
PipedChild::PipedChild(transport::Loop& loop, Launch launch, OnEnded on_ended) : PipedChild(loop, std::move(on_ended)) {
  base::Pipe in = base::make_pipe();
  base::Pipe out = base::make_pipe();
  base::Pipe errors = base::make_pipe();
  launch.standard = {in.read_end.get(), out.write_end.get(), errors.write_end.get()};
  process_ = process::launch(launch);
  running_ = true;
  channel_ = std::make_unique<transport::FdChannel>(loop, std::move(out.read_end), std::move(in.write_end));
  stderr_ = std::move(errors.read_end);
  base::set_nonblocking(stderr_.get(), true);
  stderr_watch_ = loop_.watch(stderr_.get(), EPOLLIN, drain_);
  end_watch_ = loop_.watch(process_.pidfd.get(), EPOLLIN, ending_);
}

PipedChild::~PipedChild() {
  if (!running_) return;
  signal_group(SIGKILL);
  process::reap(process_);
}

void PipedChild::signal_group(int signal) {
  if (running_) kill(-process_.pid, signal);
}

void PipedChild::reap() {
  end_watch_.cancel();
  running_ = false;
  const ExitStatus status = process::reap(process_);
  const OnEnded tell = std::move(on_ended_);  // it may destroy this
  tell(status);
}

std::string PipedChild::error_output() {
  constexpr int most_reads = 64;  // others may go on writing
  for (int reads = 0; reads < most_reads && read_stderr() > 0; ++reads) {
  }
  return tail_;
}

// Some programs write a line about everything they do. To be woken by each would cost more than their work does, so
// after a little there is a pause; after much there is none, since the program may wait for room.
void PipedChild::drain_stderr() {
  constexpr std::size_t much = 4096;
  constexpr std::chrono::milliseconds pause{20};
  if (read_stderr() >= much || !stderr_) return;
  stderr_watch_.change(0);  // that its other end is gone is told all the same
  stderr_pause_ = loop_.after(pause, [this] {
    if (stderr_watch_) stderr_watch_.change(EPOLLIN);
  });
}

// How many bytes there were.
std::size_t PipedChild::read_stderr() {
  if (!stderr_) return 0;
  std::array<char, 16 * 1024> room;  // not the loop's scratch: somebody may ask while he uses that
  const ssize_t count = read(stderr_.get(), room.data(), room.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  if (count <= 0) {
    stderr_watch_.cancel();
    stderr_.reset();
    return 0;
  }
  tail_.append(room.data(), static_cast<std::size_t>(count));
  if (tail_.size() > kept_of_stderr) tail_.erase(0, tail_.size() - kept_of_stderr);
  return static_cast<std::size_t>(count);
}

}  // namespace duet::process
