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
#include <stdexcept>
#include <string_view>
#include <utility>

#include "duet/base/process.h"
#include "duet/base/process_tree.h"

namespace duet::task {
namespace {

constexpr std::size_t buffer_bytes = 64 * 1024;
constexpr std::size_t result_bytes = 64 * 1024;
constexpr std::chrono::hours longest_limit{24 * 365 * 100};  // as good as none, and can be added to a time
constexpr std::chrono::milliseconds longest_kill_pause{1000};
constexpr std::chrono::milliseconds settle_patience{2000};

base::TimePoint now() { return base::system_clock().now(); }
base::UtcTime utc_now() { return base::system_clock().utc(); }

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
      output_(place.tasks, order_.assignment.run, record_) {}

bool KeeperProcess::run() {
  static const std::string boot = base::boot_id();
  if (!record_.write_began(order_.assignment.run, {.mark = order_.mark, .boot = boot})) return false;
  try {
    start();
  } catch (const std::runtime_error& error) {
    finish({.kind = Outcome::Kind::not_started, .ended_at = utc_now(), .problem = error.what()});
    tree_gone();
  }
  tell(Message::Kind::look);
  while (!is_finished()) {
    wait();
    meet_deadlines();
  }
  make_durable();
  return settled_;
}

void KeeperProcess::start() {
  Assignment& assignment = order_.assignment;
  base::Pipe out = base::make_pipe();
  base::Pipe err = base::make_pipe();
  base::Launch launch;
  launch.arguments = std::move(assignment.arguments);
  launch.environment = std::move(assignment.environment);
  launch.environment["DUET_TASK_ID"] = "task-" + std::to_string(assignment.run.task);
  launch.environment["DUET_TASK_MARK"] = order_.mark;
  launch.directory = std::move(assignment.directory);
  launch.standard = {input_.get(), out.write_end.get(), err.write_end.get()};
  {
    const UmaskScope scope(order_.umask);
    const base::UtcTime at = utc_now();
    started_ = Started{base::launch(launch).pid, at};
  }
  if (assignment.time_limit) limit_at_ = now() + std::min<Milliseconds>(*assignment.time_limit, longest_limit);
  const auto entry = base::read_process(started_->pid);
  record_.write_started(*started_, entry ? entry->start_ticks : 0);
  input_.reset();
  for (const base::Pipe* pipe : {&out, &err}) base::set_nonblocking(pipe->read_end.get(), true);
  streams_.push_back({.pipe = std::move(out), .is_result = true});
  streams_.push_back({.pipe = std::move(err), .is_result = false});
}

bool KeeperProcess::is_finished() const { return leave_at_ && (settled_ || !place_.contact || now() >= *leave_at_); }

int KeeperProcess::timeout() const {
  std::optional<base::TimePoint> first = leave_at_;
  for (const auto& each : {limit_at_, kill_at_}) {
    if (each && (!first || *each < *first)) first = each;
  }
  if (!first) return -1;
  const auto left = std::chrono::ceil<Milliseconds>(*first - now()).count();
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
  tell_output();
  if (ready[2].revents != 0) hear_contact();
  if (ready[1].revents != 0) take_contact();
  if (ready[0].revents != 0) reap();
}

void KeeperProcess::meet_deadlines() {
  if (limit_at_ && now() >= *limit_at_) {
    limit_at_.reset();
    timed_out_ = true;
    terminate();
  }
  if (kill_at_ && now() >= *kill_at_) {
    killing_ = true;
    base::signal_descendants(SIGKILL);
    kill_at_ = now() + kill_again_;
    kill_again_ = std::min(2 * kill_again_, longest_kill_pause);
  }
}

void KeeperProcess::read_stream(const Stream& stream, std::size_t limit) {
  const ssize_t count = read(stream.pipe.read_end.get(), place_.buffer.data(), std::min(limit, place_.buffer.size()));
  if (count <= 0) return;
  const std::string_view bytes(place_.buffer.data(), static_cast<std::size_t>(count));
  output_.append(bytes);
  if (!stream.is_result || ended_) return;
  result_ += bytes;
  if (result_.size() > 2 * result_bytes) result_.erase(0, result_.size() - result_bytes);
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
  while (place_.contact && !is_finished()) {  // what comes then is the next order
    const Received received = receive_message(place_.contact.get());
    if (received.closed) place_.contact.reset();
    if (!received.message) break;
    if (received.message->run() != order_.assignment.run) continue;
    if (received.message->kind == Message::Kind::follow) followed_ = received.message->value;
    if (received.message->kind == Message::Kind::settled) settled_ = true;
    if (received.message->kind == Message::Kind::cancel) {
      terminate();
      tell(Message::Kind::terminated);
    }
  }
  tell_output();
  if (ended_ && !place_.contact) make_durable();
}

void KeeperProcess::take_contact() {
  base::Fd contact = accept_contact(place_.listener.get());
  if (!contact) return;
  place_.contact = std::move(contact);
  followed_.reset();
  tell(Message::Kind::look);
}

void KeeperProcess::tell(Message::Kind kind, std::uint64_t value) {
  const RunId run = order_.assignment.run;
  const Message message{.kind = kind, .attempt = run.attempt, .task = run.task, .value = value};
  if (place_.contact && !send_message(place_.contact.get(), message)) place_.contact.reset();
}

void KeeperProcess::tell_output() {
  if (!followed_ || output_.total() <= *followed_) return;
  followed_.reset();
  tell(Message::Kind::output, output_.total());
}

void KeeperProcess::reap() {
  std::array<signalfd_siginfo, 8> signals;
  while (read(place_.children.get(), signals.data(), sizeof signals) > 0) {
  }
  const bool had_ended = ended_;
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid == started_->pid && !ended_) main_ended(status);
  }
  if (pid < 0 && ended_) return tree_gone();
  if (ended_ && !had_ended) tell(Message::Kind::look);
  if (ended_) terminate();
  if (killing_) base::signal_descendants(SIGKILL);
  if (ended_ && !place_.contact) make_durable();
}

void KeeperProcess::main_ended(int status) {
  Outcome outcome{.timed_out = timed_out_, .ended_at = utc_now()};
  if (WIFSIGNALED(status)) {
    outcome.kind = Outcome::Kind::signalled;
    outcome.signal = WTERMSIG(status);
  } else {
    outcome.kind = Outcome::Kind::exited;
    outcome.code = WEXITSTATUS(status);
  }
  drain();
  if (result_.size() > result_bytes) result_.erase(0, result_.size() - result_bytes);
  outcome.result = std::move(result_);
  finish(outcome);
}

void KeeperProcess::finish(const Outcome& outcome) {
  record_.write_outcome(outcome);
  ended_ = true;
  limit_at_.reset();
}

void KeeperProcess::terminate() {
  if (kill_at_ || leave_at_) return;
  base::signal_descendants(SIGTERM);
  kill_at_ = now() + order_.grace;
}

void KeeperProcess::tree_gone() {
  drain();
  streams_.clear();
  kill_at_.reset();
  record_.write_gone();
  leave_at_ = now() + settle_patience;
  tell_output();
  tell(Message::Kind::look);
}

void KeeperProcess::make_durable() {
  if (settled_ || std::exchange(durable_, true)) return;
  record_.sync(place_.tasks);
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
