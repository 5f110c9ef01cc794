#include "task/keeper_core.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace duet::task {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t result_bytes = 64 * 1024;
constexpr std::chrono::hours longest_limit{24 * 365 * 100};  // as good as none, and can be added to a time
constexpr milliseconds longest_pause{1000};

void cut_to_end(std::string& text, std::size_t size) {
  if (text.size() > size) text.erase(0, text.size() - size);
}

}  // namespace

KeeperCore::KeeperCore(const Order& order, KeeperHands& hands, base::Clock& clock, bool has_contact)
    : run_(order.assignment.run),
      mark_(order.mark),
      time_limit_(order.assignment.time_limit),
      grace_(order.grace),
      farewell_(order.farewell),
      leased_(order.assignment.claim && order.assignment.claim->leased),
      hands_(hands),
      clock_(clock),
      has_contact_(has_contact) {}

bool KeeperCore::begin() {
  if (leased_ && hands_.lease_left().until_end <= base::Duration::zero()) return refuse(EAGAIN, lease_was_over);
  const int error = hands_.write_began(run_, mark_);
  return error == 0 || refuse(error, "the record of the run cannot be written");
}

bool KeeperCore::refuse(int error, std::string_view problem) {
  known_.outcome = Outcome{.kind = Outcome::Kind::not_started, .code = error, .ended_at = clock_.utc()};
  known_.outcome->problem = problem;
  known_.gone = true;
  send_report();
  return false;
}

void KeeperCore::started(const Started& started) {
  if (time_limit_) limit_at_ = now() + std::min<milliseconds>(*time_limit_, longest_limit);
  known_.started = started;
  if (leased_) look_at_lease();
  write_down();
  tell_news();
}

void KeeperCore::not_started(int error, const std::string& problem) {
  finish({.kind = Outcome::Kind::not_started, .code = error, .ended_at = clock_.utc(), .problem = problem});
  tree_gone();
}

void KeeperCore::took_output(std::string_view bytes, bool is_stdout) {
  hands_.append_output(bytes, is_stdout ? Stream::out : Stream::err);
  if (is_stdout && !has_ended()) {
    result_ += bytes;
    if (result_.size() > 2 * result_bytes) cut_to_end(result_, result_bytes);
  }
  tell_output();
}

void KeeperCore::main_ended(int status, const process::Usage& used, bool out_of_memory) {
  Outcome outcome{.timed_out = timed_out_, .started = known_.started, .ended_at = clock_.utc()};
  if (WIFSIGNALED(status)) {
    outcome.kind = Outcome::Kind::signalled;
    outcome.signal = WTERMSIG(status);
    outcome.out_of_memory = out_of_memory && outcome.signal == SIGKILL;
  } else {
    outcome.kind = Outcome::Kind::exited;
    outcome.code = WEXITSTATUS(status);
  }
  if (lease_over_) outcome.problem = lease_was_over;
  outcome.usage = Usage{.cpu = used.cpu, .max_memory = used.max_memory, .output_bytes = hands_.output_total()};
  cut_to_end(result_, result_bytes);
  outcome.result = std::move(result_);
  finish(std::move(outcome));
}

void KeeperCore::reaped(bool none_left) {
  if (has_ended() && none_left) return tree_gone();
  if (has_ended()) {
    if (!std::exchange(told_ended_, true)) tell_news();
    terminate();
    if (!has_contact_) make_durable();
  }
  if (killing_) hands_.signal_tree(SIGKILL);
}

void KeeperCore::contact_met() {
  has_contact_ = true;
  followed_.reset();
  tell_news();
}

void KeeperCore::contact_lost() {
  has_contact_ = false;
  if (has_ended()) make_durable();
}

void KeeperCore::heard(const Message& message) {
  if (message.run() != run_) return;
  if (message.kind == Message::Kind::follow) {
    followed_ = message.value;
    tell_output();
  }
  if (message.kind == Message::Kind::ask) send_report();
  if (message.kind == Message::Kind::acknowledged) acknowledged_ = true;
  if (message.kind == Message::Kind::cancel) {
    terminate();
    send(about_run(Message::Kind::terminated));
  }
}

void KeeperCore::time_passed() {
  if (leased_) look_at_lease();
  if (limit_at_ && now() >= *limit_at_) {
    limit_at_.reset();
    timed_out_ = true;
    terminate();
  }
  if (kill_at_ && now() >= *kill_at_) {
    killing_ = true;
    hands_.signal_tree(SIGKILL);
    kill_at_ = now() + kill_again_;
    kill_again_ = std::min(2 * kill_again_, longest_pause);
  }
  if (write_at_ && now() >= *write_at_) {
    write_down();
    if (is_written()) tell_news();
  }
  if (leave_at_ && now() >= *leave_at_) leave_at_.reset();
  if (known_.gone && (!has_contact_ || !leave_at_)) make_durable();
}

std::optional<base::TimePoint> KeeperCore::deadline() const {
  std::optional<base::TimePoint> first = leave_at_;
  for (const auto& each : {limit_at_, lease_at_, kill_at_, write_at_}) {
    if (each && (!first || *each < *first)) first = each;
  }
  return first;
}

bool KeeperCore::is_finished() const {
  const bool is_safe = durable_ && is_written();
  return known_.gone && (acknowledged_ || (is_safe && (!has_contact_ || !leave_at_)));
}

bool KeeperCore::leave() {
  if (!is_written()) write_down();
  return acknowledged_;
}

void KeeperCore::finish(Outcome outcome) {
  known_.outcome = std::move(outcome);
  limit_at_.reset();
  hands_.sync_output();  // what fails here is not mended by another try
  write_down();
}

void KeeperCore::terminate() {
  if (kill_at_ || known_.gone) return;
  hands_.signal_tree(SIGTERM);
  kill_at_ = now() + grace_;
}

// A lease that is extended after TERM takes nothing back.
void KeeperCore::look_at_lease() {
  lease_at_.reset();
  if (killing_ || known_.gone) return;
  const LeaseLeft left = hands_.lease_left();
  if (left.until_end > base::Duration::zero()) {
    lease_at_ = now() + std::min<base::Duration>(left.until_end, longest_limit);
    return;
  }
  lease_over_ = lease_over_ || !kill_at_;
  terminate();
  kill_at_ = std::min(*kill_at_, now() + std::max(left.until_over, base::Duration::zero()));
}

void KeeperCore::tree_gone() {
  known_.gone = true;
  lease_at_.reset();
  kill_at_.reset();
  write_down();
  leave_at_ = now() + farewell_;
  tell_news();
  if (!has_contact_) make_durable();
}

// In the order in which it is read. The first failure ends it, but that the run is gone needs no room on the disk, as a
// result does: without it nobody may remove the output.
int KeeperCore::write_missing() {
  const auto put = [](bool is_known, bool& is_written, auto write) {
    const int error = is_known && !is_written ? write() : 0;
    if (is_known && error == 0) is_written = true;
    return error;
  };
  int error = put(known_.started.has_value(), written_.started, [&] { return hands_.write_started(*known_.started); });
  if (error == 0) error = put(has_ended(), written_.outcome, [&] { return hands_.write_outcome(*known_.outcome); });
  const int gone_error = put(known_.gone, written_.gone, [&] { return hands_.write_gone(); });
  if (error == 0) error = gone_error;
  return error == 0 ? hands_.note_output() : error;
}

void KeeperCore::write_down() {
  if (write_missing() == 0) {
    write_at_.reset();
  } else {
    write_later();
  }
}

// What a failed sync leaves on the disk is open: all of it is written once more.
void KeeperCore::make_durable() {
  if (acknowledged_ || durable_ || !is_written()) return;
  durable_ = hands_.sync_record() == 0;
  if (durable_) return;
  written_ = {};
  write_later();
}

void KeeperCore::write_later() {
  write_at_ = now() + write_again_;
  write_again_ = std::min(2 * write_again_, longest_pause);
}

Message KeeperCore::about_run(Message::Kind kind, std::uint64_t value) const {
  return {.kind = kind, .attempt = run_.attempt, .task = run_.task, .value = value};
}

void KeeperCore::send(const Message& message) {
  if (has_contact_) has_contact_ = hands_.send(message);
}

void KeeperCore::send_report() {
  Message report = about_run(Message::Kind::report);
  report.report = known_;
  send(report);
}

void KeeperCore::tell_news() {
  if (!is_written()) return send_report();
  send(about_run(Message::Kind::look));
}

void KeeperCore::tell_output() {
  const std::uint64_t total = hands_.output_total();
  if (!followed_ || total <= *followed_) return;
  followed_.reset();
  send(about_run(Message::Kind::output, total));
}

}  // namespace duet::task
