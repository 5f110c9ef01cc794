#include "task/kept_run.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace duet::task {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds most_pause{1000};
constexpr milliseconds wake_again{1000};
constexpr milliseconds vain_pause{100};
constexpr milliseconds longest_vain_pause{60'000};

// Something is used up at the moment, or refuses: the disk, memory, processes, descriptors; or is used by another. It
// says nothing about the task.
bool will_pass(int error) {
  constexpr std::array<int, 14> states{ENOSPC, EDQUOT, EROFS,   EIO,          EFBIG,   ENOMEM, EAGAIN,
                                       EMFILE, ENFILE, ENOBUFS, ETOOMANYREFS, ETXTBSY, EBUSY,  EINTR};
  return std::find(states.begin(), states.end(), error) != states.end();
}

bool is_hindered(const Outcome& outcome) {
  return outcome.kind == Outcome::Kind::not_started && will_pass(outcome.code);
}

}  // namespace

KeptRun::KeptRun(Keepers& keepers, RunId run, const KeeperEvents& events)
    : keepers_(keepers), world_(keepers.world_), run_(run), events_(events) {}

void KeptRun::start(const Assignment& assignment) {
  is_new_ = true;
  const auto given = give_order(assignment);
  if (!given) cannot_start(given.error());
}

void KeptRun::cannot_start(const Hindrance& hindrance) {
  if (record_) world_.remove_record(run_);
  record_.reset();
  if (!will_pass(hindrance.error)) return fail(hindrance.problem);
  not_now(hindrance.problem);
}

void KeptRun::not_now(const std::string& problem) {
  keepers_.log_.warn("A run cannot be started now", {{"task", run_.task}, {"reason", problem}});
  end_before_it_began(problem);
}

tl::expected<void, Hindrance> KeptRun::give_order(const Assignment& assignment) {
  const KeeperSettings& settings = keepers_.settings_;
  auto line = world_.take_keeper();
  if (!line) return tl::unexpected(line.error());
  auto made = make_record((*line)->contact());
  if (!made) return made;
  Order order{.assignment = assignment,
              .mark = world_.random_mark(),
              .umask = settings.umask,
              .grace = settings.grace,
              .farewell = settings.farewell};
  if (assignment.limits.any()) order.cgroup = settings.cgroups + '/' + record_name(run_) + '-' + order.mark;
  auto given = (*line)->give(order, *record_);
  if (given) {
    connect(std::move(*line));
  } else if (given.error().error == EPIPE) {  // that keeper was killed
    world_.remove_contact((*line)->contact());
    never_began();
  } else {
    return given;
  }
  return {};
}

// One that is there already and free belongs to a store that is no more.
tl::expected<void, Hindrance> KeptRun::make_record(const std::string& contact) {
  const auto old = world_.open_record(run_);
  if (!old && old.error().error != ENOENT) return tl::unexpected(old.error());
  if (old && !(*old)->lock()) return tl::unexpected(Hindrance{EBUSY, "a run of that number goes on"});
  world_.remove_output(run_);
  auto made = world_.make_record(run_, contact);
  // An old one that cannot be removed now, since the disk refuses.
  if (!made && made.error().error == EEXIST) return tl::unexpected(Hindrance{EBUSY, made.error().problem});
  if (!made) return tl::unexpected(made.error());
  record_ = std::move(*made);
  return {};
}

void KeptRun::adopt() {
  set_timer(milliseconds(0), [this] { find_out(); });
}

void KeptRun::cancel() {
  cancelled_ = true;
  if (in_vain_) return wait_in_vain(milliseconds(0));
  wake();
  tell(Message::Kind::cancel);
  insist();
}

pid_t KeptRun::keeper() {
  if (fingerprint_.keeper == 0 && record_) {  // it has not been heard of yet
    if (const auto state = record_->read()) fingerprint_ = state->fingerprint;
  }
  return fingerprint_.keeper;
}

// A keeper that somebody has suspended would not hear what it is told, nor end its tree, and hold a slot and the stop
// of the daemon up for ever.
void KeptRun::wake() {
  if (leftovers_) return;  // it is dead
  keeper();
  world_.wake_keeper(fingerprint_);
}

// It may be suspended at any time until the run is over.
void KeptRun::insist() {
  insist_ = keepers_.loop_.after(wake_again, [this] {
    if (over_) return;
    wake();
    if (cancelled_ && !told_terminated_) tell(Message::Kind::cancel);
    insist();
  });
}

void KeptRun::follow(std::uint64_t offset) {
  followed_ = offset;
  tell(Message::Kind::follow, offset);
}

void KeptRun::acknowledge() {
  acknowledged_ = true;
  tell(Message::Kind::acknowledged);
}

void KeptRun::connect(std::unique_ptr<KeeperLine> line) {
  if (!line->listen(this)) return later(&KeptRun::find_out);
  line_ = std::move(line);
  if (cancelled_) cancel();
  if (followed_) follow(*followed_);
  if (acknowledged_) acknowledge();
}

std::unique_ptr<KeeperLine> KeptRun::take_line() {
  if (line_) line_->listen(nullptr);
  return std::move(line_);
}

// What cannot be sent now is sent over the next line; that this one is broken is noticed in on_closed().
void KeptRun::tell(Message::Kind kind, std::uint64_t value) {
  if (line_) line_->tell({.kind = kind, .attempt = run_.attempt, .task = run_.task, .value = value});
}

void KeptRun::on_closed() {
  take_line();
  find_out();
}

void KeptRun::on_message(const Message& message) {
  if (message.run() != run_) return;
  keepers_.vain_starts_.erase(run_);
  is_new_ = false;
  if (message.kind == Message::Kind::look) look();
  if (message.report) {
    unwritten_ = true;
    learn(*message.report);
  }
  if (message.kind == Message::Kind::terminated) report_terminated();
  if (message.kind == Message::Kind::output && followed_) {
    followed_.reset();
    events_.output(run_, message.value);
  }
}

void KeptRun::look() {
  if (over_ || !line_) return;
  const auto state = record_->read();
  unwritten_ = false;
  if (state && learn_from_record(*state)) return;
  tell(Message::Kind::ask);
  later(&KeptRun::look);
}

// False if what is there cannot be read.
bool KeptRun::learn_from_record(const RunRecord::State& state) {
  fingerprint_ = state.fingerprint;
  Report report{.started = state.started, .outcome = state.outcome, .gone = state.gone};
  if (report.outcome && !told_ended_) {
    auto result = record_->read_result();
    // What a keeper could not write down yet it tells, as long as it lives.
    const bool is_lost = !result && result.error() == ENODATA && !line_;
    if (!result && !is_lost) return false;
    if (result) report.outcome->result = std::move(*result);
  }
  learn(report);
  return true;
}

void KeptRun::learn(const Report& report) {
  if (over_) return;
  if (report.outcome && is_hindered(*report.outcome) && !told_ended_) {
    acknowledge();
    world_.remove_record(run_);
    return not_now(report.outcome->problem);
  }
  if (report.started && !std::exchange(told_started_, true)) events_.started(run_, *report.started);
  if (report.outcome && !told_ended_) report_ended(*report.outcome);
  if (report.outcome && report.gone) end(events_.gone);
}

void KeptRun::report_terminated() {
  if (cancelled_ && !std::exchange(told_terminated_, true)) events_.terminated(run_);
}

void KeptRun::report_ended(const Outcome& outcome) {
  report_terminated();
  told_ended_ = true;
  insist();  // its tree may not be gone
  events_.ended(run_, outcome);
}

void KeptRun::find_out() {
  record_.reset();  // or our own handle would hold the lock
  auto opened = world_.open_record(run_);
  if (!opened && opened.error().error != ENOENT) return later(&KeptRun::find_out);
  if (opened) record_ = std::move(*opened);
  if (!record_ || record_->lock()) return keeper_is_dead();
  const auto state = record_->read();
  if (state) fingerprint_ = state->fingerprint;
  auto line = state ? world_.meet(state->contact) : nullptr;
  if (!line) return later(&KeptRun::find_out);  // a holder of the lock that cannot be reached is about to end
  connect(std::move(line));
}

void KeptRun::later(void (KeptRun::*work)()) {
  set_timer(pause_, [this, work] { (this->*work)(); });
  pause_ = std::min(2 * pause_, most_pause);
}

void KeptRun::set_timer(milliseconds wait, transport::Loop::Task task) {
  timer_ = keepers_.loop_.after(wait, std::move(task));
}

void KeptRun::keeper_is_dead() {
  const auto read = record_ ? record_->read() : RunRecord::State{};
  if (!read) return later(&KeptRun::find_out);
  const RunRecord::State& state = *read;
  if (!state.contact.empty()) world_.remove_contact(state.contact);
  if (!state.began && !told_started_) return never_began();
  if (state.began && !learn_from_record(state)) return later(&KeptRun::find_out);
  if (over_) return;
  leftovers_ = world_.end_leftovers(fingerprint_, keepers_.settings_.grace, [this, started = state.started] {
    if (!told_ended_) report_ended({.started = started, .ended_at = keepers_.loop_.clock().utc()});
    if (record_) record_->write_gone();
    end(events_.gone);
  });
}

void KeptRun::never_began() {
  world_.remove_record(run_);
  if (!is_new_) return end_before_it_began();
  const int before = std::min(keepers_.vain_starts_[run_]++, 10);
  const milliseconds pause = before == 0 ? milliseconds(0) : vain_pause * (1 << (before - 1));
  keepers_.log_.warn("No keeper took up a run", {{"task", run_.task}, {"attempt", run_.attempt}});
  in_vain_ = true;
  wait_in_vain(cancelled_ ? milliseconds(0) : std::min(pause, longest_vain_pause));
}

void KeptRun::wait_in_vain(milliseconds pause) {
  if (over_) return;
  set_timer(pause, [this] {
    if (cancelled_) keepers_.vain_starts_.erase(run_);
    end_before_it_began("its keeper was killed before it took it up");
  });
}

void KeptRun::fail(const std::string& problem) {
  set_timer(milliseconds(0), [this, problem] {
    report_ended({.kind = Outcome::Kind::not_started, .ended_at = keepers_.loop_.clock().utc(), .problem = problem});
    end(events_.gone);
  });
}

void KeptRun::end_before_it_began(std::string why) {
  report_terminated();
  end([event = events_.never_began, why = std::move(why)](RunId run) { event(run, why); });
}

// Not at once: we are called by something that goes with us.
void KeptRun::end(std::function<void(RunId)> event) {
  if (std::exchange(over_, true)) return;
  if (line_) line_->listen(nullptr);
  set_timer(milliseconds(0), [&keepers = keepers_, run = run_, event = std::move(event)] {
    keepers.forget(run);
    event(run);
  });
}

}  // namespace duet::task
