#include "task/keeper_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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
constexpr std::chrono::milliseconds first_look{250};
constexpr std::chrono::milliseconds longest_look_pause{4000};

base::Fd watch_children() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return base::Fd(base::check_call(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd"));
}

bool is_leased(const Order& order) { return order.assignment.claim && order.assignment.claim->leased; }

// Without a claim it must not find that of a task that has started its daemon.
void add_claim(process::Environment& environment, const std::optional<Claim>& claim) {
  environment.erase("DUET_TASK_FENCE");
  environment.erase("DUET_TASK_WORKER");
  if (!claim) return;
  environment["DUET_TASK_FENCE"] = std::to_string(claim->fence);
  environment["DUET_TASK_WORKER"] = claim->worker;
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
      core_(order_, *this, base::system_clock(), static_cast<bool>(place.contact)),
      usage_([this](const process::ProcessEntry& process) { return is_spared(process); }),
      look_pause_(first_look) {
  if (is_leased(order_)) lease_.emplace(place.tasks);
}

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
    look_at_usage();
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
  add_claim(launch.environment, assignment.claim);
  launch.dies_with_us = is_leased(order_);  // what the task has started lives on then, until a daemon ends it
  launch.directory = std::move(assignment.directory);
  launch.standard = {input_.get(), out.write_end.get(), err.write_end.get()};
  Started started{.pid = 0, .at = base::system_clock().utc()};
  if (assignment.limits.any()) cgroup_.emplace(order_.cgroup, assignment.limits);
  const base::Fd entrance = cgroup_ ? cgroup_->entrance() : base::Fd();
  launch.cgroup = entrance.get();
  process::forget_peak_memory();
  {
    const UmaskScope scope(order_.umask);
    started.pid = main_ = process::spawn(launch);
  }
  if (const auto entry = process::read_process(main_)) main_ticks_ = entry->start_ticks;
  input_.reset();
  for (const base::Pipe* pipe : {&out, &err}) base::set_nonblocking(pipe->read_end.get(), true);
  streams_.push_back({.pipe = std::move(out), .is_stdout = true});
  streams_.push_back({.pipe = std::move(err), .is_stdout = false});
  next_look_ = base::system_clock().now() + look_pause_;
  core_.started(started);
}

int KeeperProcess::write_began(RunId run, const std::string& mark) {
  static const std::string boot = process::boot_id();
  const Fingerprint fingerprint{.mark = mark, .boot = boot, .keeper = getpid(), .cgroup = order_.cgroup};
  return record_.write_began(run, fingerprint, order_.assignment.claim) ? 0 : errno;
}

int KeeperProcess::write_started(const Started& started) {
  return record_.write_started(started, main_ticks_) ? 0 : errno;
}

int KeeperProcess::write_outcome(const Outcome& outcome) { return record_.write_outcome(outcome) ? 0 : errno; }

int KeeperProcess::write_gone() { return record_.write_gone() ? 0 : errno; }

int KeeperProcess::sync_record() { return record_.sync(place_.tasks) ? 0 : errno; }

// A tree that forks faster than it can be looked at ends with its cgroup, unless somebody else is in there.
void KeeperProcess::signal_tree(int signal) {
  if (signal == SIGKILL && cgroup_ && !has_others(*cgroup_)) cgroup_->kill_all();
  process::signal_descendants(signal, [this](const process::ProcessEntry& process) { return is_spared(process); });
}

bool KeeperProcess::has_others(const process::Cgroup& cgroup) const {
  return std::ranges::any_of(cgroup.processes(), [this](pid_t pid) {
    const auto entry = process::read_process(pid);
    return entry && is_spared(*entry);
  });
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
  const base::TimePoint deadline = std::min(core_.deadline().value_or(base::TimePoint::max()), next_look_);
  if (deadline == base::TimePoint::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - base::system_clock().now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000));
}

void KeeperProcess::wait() {
  std::vector<pollfd> ready{
      {place_.children.get(), POLLIN, 0}, {place_.listener.get(), POLLIN, 0}, {place_.contact.get(), POLLIN, 0}};
  for (const Reading& stream : streams_) ready.push_back({stream.pipe.read_end.get(), POLLIN, 0});
  if (lease_) ready.push_back({lease_->timer(), POLLIN, 0});
  if (poll(ready.data(), ready.size(), timeout()) <= 0) return;
  if (lease_ && ready.back().revents != 0) lease_->left();  // the core asks, too, but not once all is decided
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (ready[i + 3].revents != 0) read_pipe(streams_[i], buffer_bytes);
  }
  if (ready[2].revents != 0) hear_contact();
  if (ready[1].revents != 0) take_contact();
  if (ready[0].revents != 0) reap();
}

void KeeperProcess::read_pipe(const Reading& stream, std::size_t limit) {
  const ssize_t count = read(stream.pipe.read_end.get(), place_.buffer.data(), std::min(limit, place_.buffer.size()));
  if (count <= 0) return;
  core_.took_output({place_.buffer.data(), static_cast<std::size_t>(count)}, stream.is_stdout);
}

// Reads what is in the pipes now, not what somebody may go on writing.
void KeeperProcess::drain() {
  for (const Reading& stream : streams_) {
    int waiting = 0;
    if (ioctl(stream.pipe.read_end.get(), FIONREAD, &waiting) != 0) continue;
    for (std::size_t left = static_cast<std::size_t>(waiting); left > 0;) {
      const std::size_t part = std::min(left, place_.buffer.size());
      read_pipe(stream, part);
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
  std::optional<int> main_status;
  const bool some_live = reap_children(main_status);
  if (main_status) take_end(*main_status, some_live);
  const bool none_left = core_.has_ended() && (!some_live || only_outsiders_left());
  if (none_left) {
    drain();
    streams_.clear();
  }
  core_.reaped(none_left);
}

void KeeperProcess::take_end(int status, bool some_live) {
  drain();
  next_look_ = base::TimePoint::max();
  process::Usage usage = usage_.so_far(some_live);
  const auto counts = cgroup_ ? cgroup_->counts() : process::Cgroup::Counts{};
  if (counts.cpu) usage.cpu = *counts.cpu;
  if (counts.max_memory) usage.max_memory = *counts.max_memory;
  core_.main_ended(status, usage, counts.killed_for_memory > 0);
}

// Whether children are left.
bool KeeperProcess::reap_children(std::optional<int>& main_status) {
  int status = 0;
  rusage used{};
  pid_t pid = 0;
  while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
    if (core_.has_ended()) continue;
    usage_.reaped(pid, used);
    if (pid == main_) main_status = status;
  }
  return pid == 0;
}

void KeeperProcess::look_at_usage() {
  const base::TimePoint now = base::system_clock().now();
  if (now < next_look_) return;
  usage_.look();
  look_pause_ = std::min(2 * look_pause_, longest_look_pause);
  next_look_ = now + look_pause_;
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
