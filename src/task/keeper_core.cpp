#include "task/keeper_core.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

namespace duet::task {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t result_bytes = 64 * 1024;
constexpr std::chrono::hours longest_limit{24 * 365 * 100};  // as good as none, and can be added to a time
constexpr milliseconds longest_kill_pause{1000};
constexpr milliseconds settle_patience{2000};

void cut_to_end(std::string& text, std::size_t size) {
  if (text.size() > size) text.erase(0, text.size() - size);
}

}  // namespace

KeeperCore::KeeperCore(const Order& order, KeeperHands& hands, base::Clock& clock, bool has_contact)
    : run_(order.assignment.run),
      mark_(order.mark),
      time_limit_(order.assignment.time_limit),
      grace_(order.grace),
      hands_(hands),
      clock_(clock),
      has_contact_(has_contact) {}

bool KeeperCore::begin() { return hands_.write_began(run_, mark_) == 0; }

void KeeperCore::started(const Started& started) {
  if (time_limit_) limit_at_ = now() + std::min<milliseconds>(*time_limit_, longest_limit);
  hands_.write_started(started);
  tell(Message::Kind::look);
}

void KeeperCore::not_started(const std::string& problem) {
  finish({.kind = Outcome::Kind::not_started, .ended_at = clock_.utc(), .problem = problem});
  tree_gone();
}

void KeeperCore::took_output(std::string_view bytes, bool is_stdout) {
  hands_.append_output(bytes);
  if (is_stdout && !ended_) {
    result_ += bytes;
    if (result_.size() > 2 * result_bytes) cut_to_end(result_, result_bytes);
  }
  tell_output();
}

void KeeperCore::main_ended(int status) {
  Outcome outcome{.timed_out = timed_out_, .ended_at = clock_.utc()};
  if (WIFSIGNALED(status)) {
    outcome.kind = Outcome::Kind::signalled;
    outcome.signal = WTERMSIG(status);
  } else {
    outcome.kind = Outcome::Kind::exited;
    outcome.code = WEXITSTATUS(status);
  }
  cut_to_end(result_, result_bytes);
  outcome.result = std::move(result_);
  finish(outcome);
}

void KeeperCore::reaped(bool none_left) {
  if (!ended_) {
    if (killing_) hands_.signal_tree(SIGKILL);
    return;
  }
  if (none_left) return tree_gone();
  if (!std::exchange(told_ended_, true)) tell(Message::Kind::look);
  terminate();
  if (killing_) hands_.signal_tree(SIGKILL);
  if (!has_contact_) make_durable();
}

void KeeperCore::contact_met() {
  has_contact_ = true;
  followed_.reset();
  tell(Message::Kind::look);
}

void KeeperCore::contact_lost() {
  has_contact_ = false;
  if (ended_) make_durable();
}

void KeeperCore::heard(const Message& message) {
  if (message.run() != run_) return;
  if (message.kind == Message::Kind::follow) {
    followed_ = message.value;
    tell_output();
  }
  if (message.kind == Message::Kind::settled) settled_ = true;
  if (message.kind == Message::Kind::cancel) {
    terminate();
    tell(Message::Kind::terminated);
  }
}

void KeeperCore::time_passed() {
  if (limit_at_ && now() >= *limit_at_) {
    limit_at_.reset();
    timed_out_ = true;
    terminate();
  }
  if (kill_at_ && now() >= *kill_at_) {
    killing_ = true;
    hands_.signal_tree(SIGKILL);
    kill_at_ = now() + kill_again_;
    kill_again_ = std::min(2 * kill_again_, longest_kill_pause);
  }
}

std::optional<base::TimePoint> KeeperCore::deadline() const {
  std::optional<base::TimePoint> first = leave_at_;
  for (const auto& each : {limit_at_, kill_at_}) {
    if (each && (!first || *each < *first)) first = each;
  }
  return first;
}

bool KeeperCore::is_finished() const { return leave_at_ && (settled_ || !has_contact_ || now() >= *leave_at_); }

bool KeeperCore::leave() {
  make_durable();
  return settled_;
}

void KeeperCore::finish(const Outcome& outcome) {
  hands_.write_outcome(outcome);
  ended_ = true;
  limit_at_.reset();
}

void KeeperCore::terminate() {
  if (kill_at_ || leave_at_) return;
  hands_.signal_tree(SIGTERM);
  kill_at_ = now() + grace_;
}

void KeeperCore::tree_gone() {
  kill_at_.reset();
  hands_.write_gone();
  leave_at_ = now() + settle_patience;
  tell(Message::Kind::look);
}

void KeeperCore::make_durable() {
  if (settled_ || std::exchange(durable_, true)) return;
  hands_.sync_record();
}

void KeeperCore::tell(Message::Kind kind, std::uint64_t value) {
  if (!has_contact_) return;
  has_contact_ = hands_.send({.kind = kind, .attempt = run_.attempt, .task = run_.task, .value = value});
}

void KeeperCore::tell_output() {
  const std::uint64_t total = hands_.output_total();
  if (!followed_ || total <= *followed_) return;
  followed_.reset();
  tell(Message::Kind::output, total);
}

}  // namespace duet::task
