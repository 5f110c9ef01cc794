#include "task/kept_run.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include "duet/base/process.h"
#include "duet/base/process_tree.h"
#include "task/order.h"
#include "task/output.h"

namespace duet::task {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds longest_pause{1000};
constexpr int max_vain_starts = 3;

// Something is used up at the moment: the disk, memory, processes, descriptors.
bool will_pass(int error) {
  constexpr std::array<int, 6> shortages{ENOSPC, EDQUOT, ENOMEM, EAGAIN, EMFILE, ENFILE};
  return std::find(shortages.begin(), shortages.end(), error) != shortages.end();
}

}  // namespace

void remove_record(int tasks, RunId run) {
  const RunRecord record = RunRecord::open(tasks, run);
  if (record && !record.read_extent()) unlinkat(tasks, record_name(run).c_str(), 0);
}

KeptRun::KeptRun(Keepers& keepers, RunId run, const KeeperEvents& events)
    : keepers_(keepers), run_(run), events_(events) {}

KeptRun::~KeptRun() {
  take_link();
  if (timer_) keepers_.loop_.cancel(*timer_);
}

void KeptRun::start(const Assignment& assignment) {
  is_new_ = true;
  try {
    give_order(assignment);
  } catch (const base::LaunchError& error) {
    cannot_start(error.error(), error.what());
  } catch (const std::system_error& error) {
    cannot_start(error.code().value(), error.what());
  }
}

void KeptRun::cannot_start(int error, const std::string& problem) {
  if (record_) remove_record(keepers_.settings_.tasks, run_);
  record_ = {};
  if (!will_pass(error)) return fail(problem);
  keepers_.log_.warn("A run cannot be started now", {{"task", run_.task}, {"reason", problem}});
  end(events_.never_began);
}

void KeptRun::give_order(const Assignment& assignment) {
  const KeeperSettings& settings = keepers_.settings_;
  const Order order{.assignment = assignment, .mark = random_mark(), .umask = settings.umask, .grace = settings.grace};
  KeeperLink link = keepers_.nursery_.take();
  make_record(link.name);
  if (send_order(link.socket.get(), order, record_)) return connect(std::move(link));
  unlinkat(settings.tasks, link.name.c_str(), 0);  // that keeper was killed
  never_began();
}

// One that is there already and free belongs to a store that is no more.
void KeptRun::make_record(const std::string& contact) {
  const int tasks = keepers_.settings_.tasks;
  const RunRecord old = RunRecord::open(tasks, run_);
  if (old && !old.lock()) throw std::system_error(EBUSY, std::generic_category(), "a run of that number goes on");
  remove_output(tasks, run_);
  record_ = RunRecord::create(tasks, run_, contact);
}

void KeptRun::adopt() {
  timer_ = keepers_.loop_.after(milliseconds(0), [this] { find_out(); });
}

void KeptRun::cancel() {
  cancelled_ = true;
  wake_keeper();
  tell(Message::Kind::cancel);
}

// One that somebody has suspended would not hear what it is told, and hold up the stop of the daemon for ever.
void KeptRun::wake_keeper() const {
  const auto main = fingerprint_.main > 0 ? base::read_process(fingerprint_.main) : std::nullopt;
  if (!main || main->start_ticks != fingerprint_.main_ticks) return;
  if (const auto keeper = base::read_process(main->parent)) base::signal_process(base::hold_process(*keeper), SIGCONT);
}

void KeptRun::follow(std::uint64_t offset) {
  followed_ = offset;
  tell(Message::Kind::follow, offset);
}

void KeptRun::settle() {
  settled_ = true;
  tell(Message::Kind::settled);
}

void KeptRun::connect(KeeperLink link) {
  link_ = std::move(link);
  keepers_.loop_.watch(link_.socket.get(), EPOLLIN, *this);
  if (cancelled_) cancel();
  if (followed_) follow(*followed_);
  if (settled_) settle();
}

KeeperLink KeptRun::take_link() {
  if (link_) keepers_.loop_.unwatch(link_.socket.get(), *this);
  return std::exchange(link_, {});
}

// What cannot be sent now is sent over the next link; that this one is broken is noticed in on_ready().
void KeptRun::tell(Message::Kind kind, std::uint64_t value) {
  if (!link_) return;
  send_message(link_.socket.get(), {.kind = kind, .attempt = run_.attempt, .task = run_.task, .value = value});
}

void KeptRun::on_ready(std::uint32_t /*events*/) {
  while (link_ && !over_) {
    const Received received = receive_message(link_.socket.get());
    if (received.message) {
      take(*received.message);
    } else if (received.closed) {
      take_link();
      find_out();
    } else {
      break;
    }
  }
}

void KeptRun::take(const Message& message) {
  if (message.run() != run_) return;
  keepers_.vain_starts_.erase(run_);
  is_new_ = false;
  if (message.kind == Message::Kind::look) look();
  if (message.kind == Message::Kind::terminated) report_terminated();
  if (message.kind == Message::Kind::output && followed_) {
    followed_.reset();
    events_.output(run_, message.value);
  }
}

void KeptRun::look() { report(record_.read()); }

void KeptRun::report(const RunRecord::State& state) {
  fingerprint_ = state.fingerprint;
  if (state.started && !std::exchange(told_started_, true)) events_.started(run_, *state.started);
  if (state.outcome && !told_ended_) {
    Outcome outcome = *state.outcome;
    outcome.result = record_.read_result();
    report_ended(outcome);
  }
  if (state.outcome && state.gone) end(events_.gone);
}

void KeptRun::report_terminated() {
  if (cancelled_ && !std::exchange(told_terminated_, true)) events_.terminated(run_);
}

void KeptRun::report_ended(const Outcome& outcome) {
  report_terminated();
  told_ended_ = true;
  events_.ended(run_, outcome);
}

void KeptRun::find_out() {
  record_ = {};  // or our own handle would hold the lock
  record_ = RunRecord::open(keepers_.settings_.tasks, run_);
  if (!record_ && errno != ENOENT) return find_out_later();
  if (!record_ || record_.lock()) return keeper_is_dead();
  const std::string name = record_.read().contact;
  base::Fd socket = connect_in(keepers_.settings_.tasks, name);
  if (!socket) return find_out_later();
  connect({std::move(socket), name});
}

// A holder of the lock that cannot be reached is about to end.
void KeptRun::find_out_later() {
  timer_ = keepers_.loop_.after(pause_, [this] { find_out(); });
  pause_ = std::min(2 * pause_, longest_pause);
}

void KeptRun::keeper_is_dead() {
  const RunRecord::State state = record_ ? record_.read() : RunRecord::State{};
  if (!state.contact.empty()) unlinkat(keepers_.settings_.tasks, state.contact.c_str(), 0);
  if (!state.began && !told_started_) return never_began();
  if (state.began) report(state);
  if (over_) return;
  leftovers_ = std::make_unique<Leftovers>(keepers_.loop_, fingerprint_, keepers_.settings_.grace, [this, state] {
    if (!told_ended_) report_ended({.started = state.started, .ended_at = keepers_.loop_.clock().utc()});
    if (record_) record_.write_gone();
    end(events_.gone);
  });
}

void KeptRun::never_began() {
  remove_record(keepers_.settings_.tasks, run_);
  if (is_new_ && ++keepers_.vain_starts_[run_] >= max_vain_starts) {
    keepers_.vain_starts_.erase(run_);
    return fail("no keeper could be started");
  }
  report_terminated();
  end(events_.never_began);
}

void KeptRun::fail(const std::string& problem) {
  timer_ = keepers_.loop_.after(milliseconds(0), [this, problem] {
    report_ended({.kind = Outcome::Kind::not_started, .ended_at = keepers_.loop_.clock().utc(), .problem = problem});
    end(events_.gone);
  });
}

// Not at once: we are called by something that goes with us.
void KeptRun::end(std::function<void(RunId)> event) {
  if (std::exchange(over_, true)) return;
  timer_ = keepers_.loop_.after(milliseconds(0), [&keepers = keepers_, run = run_, event = std::move(event)] {
    keepers.forget(run);
    event(run);
  });
}

}  // namespace duet::task
