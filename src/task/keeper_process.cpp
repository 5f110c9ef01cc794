#include "task/keeper_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "duet/base/clock.h"
#include "process/launch.h"
#include "process/process_tree.h"
#include "task/outsider.h"

namespace duet::task {
namespace {

constexpr std::size_t buffer_bytes = 64 * 1024;

base::Fd watch_children() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return base::Fd(base::check_call(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
}

// The task's umask, while the task is started.
class UmaskScope {
 public:
  explicit UmaskScope(mode_t mask) : before_(umask(mask)) {}
  UmaskScope(const UmaskScope&) = delete;
  UmaskScope& operator=(const UmaskScope&) = delete;
  ~UmaskScope() { umask(before_); }

 private:
  mode_t before_;
};

}  // namespace

KeeperProcess::KeeperProcess(Place& place, ReceivedOrder order)
    : order_(std::move(order.order)),
      input_(std::move(order.input)),
      place_(place),
      record_(std::move(order.record)),
      output_(place.tasks, order_.assignment.run, record_),
      core_(order_, *this, base::system_clock(), static_cast<bool>(place.contact)) {}

bool KeeperProcess::run() {
  if (!core_.begin()) return false;
  try {
    start();
  } catch (const process::LaunchError& error) {
    core_.not_started(error.error(), error.what());
  } catch (const std::system_error& error) {
    core_.not_started(error.code().value(), error.what());
  }
  while (!core_.is_finished()) {
    wait();
    core_.time_passed();
  }
  return core_.leave() && !has_outsiders_;
}

void KeeperProcess::start() {
  Assignment& assignment = order_.assignment;
  base::Pipe out = base::make_pipe();
  base::Pipe err = base::make_pipe();
  process::Launch launch;
  launch.arguments = std::move(assignment.arguments);
  launch.environment = std::move(assignment.environment);
  for (const std::string_view name : outsider_variables) launch.environment.erase(std::string(name));
  launch.environment["DUET_TASK_ID"] = "task-" + std::to_string(assignment.run.task);
  launch.environment["DUET_TASK_MARK"] = order_.mark;
  launch.directory = std::move(assignment.directory);
  launch.standard = {input_.get(), out.write_end.get(), err.write_end.get()};
  Started started{.pid = 0, .at = base::system_clock().utc()};
  {
    const UmaskScope scope(order_.umask);
    started.pid = main_ = process::spawn(launch);
  }
  if (const auto entry = process::read_process(main_)) main_ticks_ = entry->start_ticks;
  input_.reset();
  for (const base::Pipe* pipe : {&out, &err}) base::set_nonblocking(pipe->read_end.get(), true);
  streams_.push_back({.pipe = std::move(out), .is_stdout = true});
  streams_.push_back({.pipe = std::move(err), .is_stdout = false});
  core_.started(started);
}

int KeeperProcess::write_began(RunId run, const std::string& mark) {
  static const std::string boot = process::boot_id();
  return record_.write_began(run, {.mark = mark, .boot = boot, .keeper = getpid()}) ? 0 : errno;
}

int KeeperProcess::write_started(const Started& started) {
  return record_.write_started(started, main_ticks_) ? 0 : errno;
}

int KeeperProcess::write_outcome(const Outcome& outcome) { return record_.write_outcome(outcome) ? 0 : errno; }

int KeeperProcess::write_gone() { return record_.write_gone() ? 0 : errno; }

int KeeperProcess::sync_record() { return record_.sync(place_.tasks) ? 0 : errno; }

void KeeperProcess::signal_tree(int signal) {
  process::signal_descendants(signal, [this](const process::ProcessEntry& process) { return is_spared(process); });
}

// Whatever it may say in its environment, the main process is the task.
bool KeeperProcess::is_spared(const process::ProcessEntry& process) const {
  return is_outsider(process) && (process.pid != main_ || core_.has_ended());
}

bool KeeperProcess::send(const Message& message) {
  if (send_message(place_.contact.get(), message)) return true;
  place_.contact.reset();
  return false;
}

int KeeperProcess::timeout() const {
  const auto deadline = core_.deadline();
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - base::system_clock().now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

void KeeperProcess::wait() {
  std::vector<pollfd> ready{
      {place_.children.get(), POLLIN, 0}, {place_.listener.get(), POLLIN, 0}, {place_.contact.get(), POLLIN, 0}};
  for (const Stream& stream : streams_) ready.push_back({stream.pipe.read_end.get(), POLLIN, 0});
  if (poll(ready.data(), ready.size(), timeout()) <= 0) return;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (ready[i + 3].revents != 0) read_stream(streams_[i], buffer_bytes);
  }
  if (ready[2].revents != 0) hear_contact();
  if (ready[1].revents != 0) take_contact();
  if (ready[0].revents != 0) reap();
}

void KeeperProcess::read_stream(const Stream& stream, std::size_t limit) {
  const ssize_t count = read(stream.pipe.read_end.get(), place_.buffer.data(), std::min(limit, place_.buffer.size()));
  if (count <= 0) return;
  core_.took_output({place_.buffer.data(), static_cast<std::size_t>(count)}, stream.is_stdout);
}

// Reads what is in the pipes now, not what somebody may go on writing.
void KeeperProcess::drain() {
  for (const Stream& stream : streams_) {
    int waiting = 0;
    if (ioctl(stream.pipe.read_end.get(), FIONREAD, &waiting) != 0) continue;
    for (std::size_t left = static_cast<std::size_t>(waiting); left > 0;) {
      const std::size_t part = std::min(left, place_.buffer.size());
      read_stream(stream, part);
      left -= part;
    }
  }
}

void KeeperProcess::hear_contact() {
  while (place_.contact && !core_.is_finished()) {  // what comes then is the next order
    const Received received = receive_message(place_.contact.get());
    if (received.closed) {
      place_.contact.reset();
      core_.contact_lost();
    }
    if (!received.message) break;
    core_.heard(*received.message);
  }
}

void KeeperProcess::take_contact() {
  base::Fd contact = accept_contact(place_.listener.get());
  if (!contact) return;
  place_.contact = std::move(contact);
  core_.contact_met();
}

void KeeperProcess::reap() {
  std::array<signalfd_siginfo, 8> signals;
  while (read(place_.children.get(), signals.data(), sizeof signals) > 0) {
  }
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid != main_ || core_.has_ended()) continue;
    drain();
    core_.main_ended(status);
  }
  const bool none_left = core_.has_ended() && (pid < 0 || only_outsiders_left());
  if (none_left) {
    drain();
    streams_.clear();
  }
  core_.reaped(none_left);
}

// One look may miss a process that is forked meanwhile; but only where there are outsiders does it matter.
bool KeeperProcess::only_outsiders_left() {
  const auto spared = [this](const process::ProcessEntry& process) {
    const bool found = is_spared(process);
    has_outsiders_ = has_outsiders_ || found;
    return found;
  };
  for (int looks = 0; looks < 3; ++looks) {
    if (!process::descendants(getpid(), spared).empty() || !has_outsiders_) return false;
  }
  return true;
}

void refuse_order(base::Fd listener, int error) {
  const base::Fd contact = accept_contact(listener.get());
  const auto order = contact ? receive_order(contact.get()) : std::nullopt;
  if (!order) return;
  const RunId run = order->order.assignment.run;
  Message message{.kind = Message::Kind::report, .attempt = run.attempt, .task = run.task};
  message.report = Report{.gone = true};
  message.report->outcome = Outcome{.kind = Outcome::Kind::not_started,
                                    .code = error,
                                    .ended_at = base::system_clock().utc(),
                                    .problem = "no keeper can be forked"};
  send_message(contact.get(), message);
}

void run_keeper(int tasks, base::Fd listener) {
  KeeperProcess::Place place{.tasks = tasks, .listener = std::move(listener)};
  base::check_call(prctl(PR_SET_CHILD_SUBREAPER, 1), "PR_SET_CHILD_SUBREAPER");
  place.children = watch_children();
  place.buffer.resize(buffer_bytes);
  place.contact = accept_contact(place.listener.get());
  while (place.contact) {
    auto order = receive_order(place.contact.get());
    if (!order || !KeeperProcess(place, std::move(*order)).run()) break;
  }
}

}  // namespace duet::task
