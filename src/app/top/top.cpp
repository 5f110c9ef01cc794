#include "app/top/top.h"

#include <signal.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <boost/json/object.hpp>

#include "app/client/refusal_text.h"
#include "app/view/task_view.h"
#include "duet/base/base64.h"
#include "duet/rpc/value.h"

namespace duet::app::top {
namespace {

using boost::json::object;
using boost::json::value;
using task::TaskId;
using namespace std::chrono_literals;

constexpr auto between_draws = 100ms;
constexpr base::Duration busy_tick = 1s;
constexpr base::Duration idle_tick = 5s;
constexpr base::Duration least_pause = 100ms;  // between two looks at the output that is followed
constexpr base::Duration most_pause = 1s;
constexpr std::uint64_t most_at_first = 256 * 1024;  // bytes of output; what was written before is left out
constexpr std::uint64_t most_behind = 32 * 1024;     // the same later: nobody reads more in a moment
constexpr int code_of_signal = 128;                  // and its number
constexpr int most_empty_reads = 20;                 // of a terminal that says it has something: it is gone

Moment moment_of(base::UtcTime now) {
  const time_t seconds = std::chrono::system_clock::to_time_t(now);
  struct tm local {};
  localtime_r(&seconds, &local);
  return {.now = now, .zone = std::chrono::seconds(local.tm_gmtoff)};
}

std::string why_not(std::string_view method, const peer::Outcome& outcome) {
  if (outcome.error) return refusal_text(method, *outcome.error);
  return "the daemon did not answer " + std::string(method);
}

}  // namespace

Top::Readable::Readable(transport::Loop& loop, int fd, std::function<void(std::uint32_t)> call)
    : call_(std::move(call)), watch_(loop.watch(fd, EPOLLIN, *this)) {}

Top::Top(DaemonClient& daemon, const std::string& place, const Drawing& drawing, bool coloured)
    : loop_(daemon.client().loop()),
      signals_(loop_, {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGWINCH, SIGTSTP},
               [this](int signal) { take_signal(signal); }),
      screen_(coloured),
      feed_(daemon, place, [this] { changed(); }),
      keys_(loop_, STDIN_FILENO, [this](std::uint32_t events) { read_keys(events); }),
      parent_(loop_, drawing.parent, [abandon = drawing.abandon](std::uint32_t) { abandon(); }) {}

int Top::run() {
  drawn_ = loop_.now();  // by the time of the first draw there is something to see
  changed();
  tick_within(idle_tick);
  while (!code_) {
    loop_.turn();
    feed_.look_after_connection();
  }
  return *code_;
}

void Top::take_signal(int signal) {
  if (signal == SIGTSTP) return suspend();
  if (signal != SIGWINCH) {
    code_ = code_of_signal + signal;
    return;
  }
  screen_.fit();
  is_stale_ = true;
  changed();
}

// ---- keys

void Top::read_keys(std::uint32_t events) {
  ++empty_reads_;
  while (const std::optional<Key> key = screen_.read_key()) {
    empty_reads_ = 0;
    do_what_is_wished(view_.press(*key, feed_.board()));
    if (code_) return;
  }
  const bool is_gone = (events & (EPOLLHUP | EPOLLERR)) != 0 || empty_reads_ > most_empty_reads;
  if (is_gone) code_ = code_of_signal + SIGHUP;
  changed();
}

void Top::do_what_is_wished(const View::Wish& wish) {
  using Kind = View::Wish::Kind;
  switch (wish.kind) {
    case Kind::quit:
      code_ = 0;
      break;
    case Kind::suspend:
      suspend();
      break;
    case Kind::redraw:
      screen_.forget_content();
      is_stale_ = true;
      break;
    case Kind::follow:
      follow();
      break;
    case Kind::leave:
      reading_.cancel();
      break;
    case Kind::cancel:
      cancel(wish.number);
      break;
    case Kind::pause:
      pause();
      break;
    case Kind::nothing:
      break;
  }
}

// Whoever waits for us stops when we do. Without a shell that could let us go on the kernel does not stop us.
void Top::suspend() {
  screen_.leave();
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  signal(SIGTSTP, SIG_DFL);
  raise(SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);  // here it stops
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  screen_.come_back();
  is_stale_ = true;
  changed();
}

void Top::cancel(TaskId number) {
  const std::string id = task::to_text(number);
  const bool asked = feed_.ask("task.cancel", {{"taskId", id}}, [this, id](const peer::Outcome& outcome) {
    const bool accepted = outcome.cause == peer::Outcome::Cause::answered;
    view_.say(accepted ? id + " is being cancelled" : screen_text(why_not("task.cancel", outcome)));
    changed();
  });
  if (!asked) view_.say("there is no daemon to ask");
}

void Top::pause() {
  const bool resumes = feed_.board().is_paused();
  const std::string method = resumes ? "queue.resume" : "queue.pause";
  const bool asked = feed_.ask(method, {}, [this, method, resumes](const peer::Outcome& outcome) {
    if (outcome.cause != peer::Outcome::Cause::answered) {
      view_.say(screen_text(why_not(method, outcome)));
    } else {
      view_.say(resumes ? "the queue goes on" : "the queue is paused; p lets it go on");
    }
    feed_.refresh_queue();
    changed();
  });
  if (!asked) view_.say("there is no daemon to ask");
}

// ---- the screen

void Top::changed() {
  if (drawing_) return;
  drawing_ = loop_.at(std::max(loop_.now(), drawn_ + between_draws), [this] { draw(); });
}

void Top::draw() {
  view_.settle(feed_.board());
  Screenful now = lay_out(feed_.board(), view_, feed_.link(), moment_of(loop_.clock().utc()), screen_.size());
  view_.set_page_rows(now.page_rows);
  const bool is_same = !is_stale_ && now.frame == shown_.frame;
  const bool shows_others = now.running != shown_.running;
  shown_ = std::move(now);
  if (shows_others) tick_within(between_draws);
  if (is_same) return;
  is_stale_ = false;
  drawn_ = loop_.now();
  screen_.draw(shown_.frame);
}

// At the latest; one that is to come earlier comes then.
void Top::tick_within(base::Duration wait) {
  const base::TimePoint due = loop_.now() + wait;
  if (ticking_ && next_tick_ <= due) return;
  next_tick_ = due;
  ticking_ = loop_.at(due, [this] { tick(); });
}

void Top::tick() {
  feed_.tick(shown_.running);
  if (view_.followed()) look_after_followed();
  changed();
  tick_within(feed_.board().running().empty() ? idle_tick : busy_tick);
}

// ---- the task that is followed

void Top::follow() {
  pause_before_reading_ = {};
  explain();
  read_later(true);
}

// One that had ended may have been started again.
void Top::look_after_followed() {
  explain();
  Followed& task = *view_.followed();
  const TaskRow* const row = feed_.board().find(task.number);
  if (!task.done || row == nullptr || task::has_ended(row->state)) return;
  task.done = false;
  read_later(true);
}

void Top::explain() {
  const TaskId number = view_.followed()->number;
  const TaskRow* const row = feed_.board().find(number);
  if (row == nullptr) return;  // what was said last holds
  if (row->state != task::State::queued) {
    view_.followed()->why.clear();
    return;
  }
  feed_.ask("task.explain", {{"taskId", row->id()}}, [this, number](const peer::Outcome& outcome) {
    if (outcome.cause != peer::Outcome::Cause::answered) return;
    if (!view_.followed() || view_.followed()->number != number) return;
    const value answer = rpc::parse_value(outcome.result);
    view_.followed()->why = answer.is_object() ? screen_text(member_text(answer.get_object(), "text")) : "";
    changed();
  });
}

// The longer nothing comes, the seldomer it is looked for.
void Top::read_later(bool is_busy) {
  pause_before_reading_ = is_busy ? least_pause : std::min(2 * pause_before_reading_, most_pause);
  reading_ = loop_.after(pause_before_reading_, [this] {
    if (!view_.followed()) return;
    const TaskId number = view_.followed()->number;
    const object params{{"taskId", task::to_text(number)}, {"offset", behind_every_end}, {"limit", 1}};
    const bool asked = feed_.ask("task.output", params, [this, number](const peer::Outcome& outcome) {
      if (!view_.followed() || view_.followed()->number != number) return;
      if (is_unknown_task(outcome)) return say_it_was_removed();
      if (outcome.cause != peer::Outcome::Cause::answered) return read_later(false);
      const value answer = rpc::parse_value(outcome.result);
      view_.followed()->done = answer.at("done").as_bool();
      read_on(number, answer.at("next").to_number<std::uint64_t>());
    });
    if (!asked) read_later(false);
  });
}

void Top::say_it_was_removed() {
  view_.followed()->why = "the task was removed";
  view_.followed()->done = true;
  changed();
}

void Top::read_on(TaskId number, std::uint64_t end) {
  Followed& task = *view_.followed();
  if (end <= task.next) {
    changed();
    return task.done ? void() : read_later(false);
  }
  const std::uint64_t most = task.next == 0 ? most_at_first : most_behind;
  if (end - task.next > most) {
    task.output.note("[" + std::to_string(end - most - task.next) + " bytes are not shown; 'task output' has them]");
    task.next = end - most;
  }
  const object params{
      {"taskId", task::to_text(number)}, {"offset", task.next}, {"limit", end - task.next}, {"encoding", "base64"}};
  feed_.ask("task.output", params, [this, number](const peer::Outcome& outcome) {
    if (!view_.followed() || view_.followed()->number != number) return;
    if (outcome.cause != peer::Outcome::Cause::answered) return read_later(false);
    const value piece = rpc::parse_value(outcome.result);
    Followed& followed = *view_.followed();
    followed.output.append(base::from_base64(piece.at("data").as_string()).value_or(""));
    followed.next = std::max(followed.next, piece.at("next").to_number<std::uint64_t>());
    changed();
    read_later(true);
  });
}

}  // namespace duet::app::top
