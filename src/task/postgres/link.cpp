#include "task/postgres/link.h"

#include <algorithm>
#include <random>
#include <system_error>
#include <utility>

#include "duet/base/all_calls.h"

namespace duet::task::postgres {
namespace {

constexpr base::Duration longest_search = std::chrono::minutes(2);

bool is_momentary(const std::string& sqlstate) {
  return sqlstate == "40001" || sqlstate == "40P01" || sqlstate == "55P03";
}

// This is not the primary any more, or one that has taken over and was not greeted: behind a pooler connections go on.
bool is_another_server(const std::string& sqlstate) { return sqlstate == "25006" || sqlstate == "DU002"; }

Fault never(std::string why) { return {Fault::Kind::never, "", std::move(why)}; }
Fault unknown(std::string why) { return {Fault::Kind::unknown, "", std::move(why)}; }

}  // namespace

Link::Link(transport::Loop& loop, const StoreAddress& address, Events events, Options options)
    : loop_(loop),
      address_(address),
      events_(std::move(events)),
      options_(options),
      search_(loop, address, options.search),
      server_(address.text()) {}

void Link::start() { search_later(); }

void Link::search_later() {
  stage_ = Stage::searching;
  pause_ = loop_.after(pauses_.next(random()), [this] { search(); });
}

// One that comes to nothing, without memory say, begins anew.
void Link::search() {
  pause_ = loop_.after(longest_search, [this] { search(); });
  search_.begin([this](tl::expected<ServerSearch::Found, std::string> outcome) { found(std::move(outcome)); });
}

void Link::found(tl::expected<ServerSearch::Found, std::string> outcome) {
  if (!outcome) return close(outcome.error());
  server_ = address_.user() + '@' + outcome->where.text() + '/' + address_.database();
  try {
    open_session(std::move(outcome->connection));
  } catch (const std::system_error& error) {
    return close(error.what());
  }
  pause_.cancel();
  stage_ = Stage::greeting;
  greeted_until_ = loop_.now() + options_.patience;
  watch_time();
  if (events_.connected) {
    events_.connected();
  } else {
    accept();
  }
}

void Link::open_session(PgConnection connection) {
  Session::Events events;
  events.lost = [this](const std::string& why) { lost(why); };
  events.notified = [this](const std::string& channel, const std::string& payload) {
    if (events_.notified) events_.notified(channel, payload);
  };
  ++connection_;
  session_ = std::make_unique<Session>(loop_, std::move(connection), std::move(events));
}

void Link::prepare_statements() {
  if (session_) session_->prepare_statements();
}

void Link::accept() {
  if (stage_ != Stage::greeting) return;
  stage_ = Stage::up;
  up_since_ = loop_.now();
  const auto there = lifetime_.watch();
  if (events_.up) events_.up();
  if (there()) pump();
}

void Link::refuse(const std::string& why) {
  if (stage_ != Stage::greeting) return;
  search_.try_others_first();
  close(why);
}

void Link::reconnect(const std::string& why) {
  if (session_) close(why);
}

void Link::lost(const std::string& why) { close(why); }

void Link::close(const std::string& why) {
  if (stage_ == Stage::up && loop_.now() - up_since_ >= options_.settled) pauses_.begin_anew();
  session_.reset();
  inquiring_ = false;
  repeat_pause_.cancel();
  search_later();
  CallQueue urgent = std::exchange(urgent_, CallQueue());
  std::optional<Call> sent = std::exchange(sent_, std::nullopt);
  if (sent && sent->done && sent->is_read()) {  // it changes nothing, so it is asked again
    waiting_.push_front(std::move(*std::exchange(sent, std::nullopt)));
    watch_time();
  }
  const auto there = lifetime_.watch();
  base::AllCalls calls;
  if (sent) calls.make([&] { sent->answer(tl::unexpected(unknown(why))); });
  while (there() && !urgent.empty()) calls.make([&] { urgent.pop().answer(tl::unexpected(never(why))); });
  if (there() && events_.down) calls.make([&] { events_.down(why); });
  calls.check();
}

void Link::call(Statement statement, Line::Done done, Place place) {
  if (statement.has_zero_byte()) {
    return answer_later(std::move(done), {Fault::Kind::refused, "22021", "text with a zero byte"});
  }
  if (waiting_.size() >= options_.most_calls || waiting_.bytes() + statement.bytes() > options_.most_bytes) {
    return answer_later(std::move(done), never("too much waits for the database already"));
  }
  waiting_.push_back({.statement = std::move(statement),
                      .done = std::move(done),
                      .deadline = loop_.now() + options_.patience,
                      .may_move = place == Place::movable,
                      .is_guest = place == Place::guest});
  pump();
  watch_time();
}

void Link::ask(Statement statement, Line::Done done) {
  if (!session_) return answer_later(std::move(done), never("there is no connection"));
  urgent_.push_back({std::move(statement), std::move(done), loop_.now() + options_.patience});
  pump();
  watch_time();
}

void Link::answer_later(Line::Done done, Fault fault) {
  loop_.defer(lifetime_.bind([done = std::move(done), fault = std::move(fault)] { done(tl::unexpected(fault)); }));
}

void Link::pump() {
  if (!session_ || !session_->is_sound() || session_->is_busy() || repeat_pause_) return;
  if (auto call = next_call()) send(std::move(*call));
}

std::optional<Call> Link::next_call() {
  if (!urgent_.empty()) return urgent_.pop();
  if (stage_ != Stage::up || waiting_.empty()) return std::nullopt;
  // One whose time is up is answered by check_time().
  if (*waiting_.deadline() <= loop_.now()) return std::nullopt;
  return waiting_.pop();
}

void Link::send(Call call) {
  sent_ = std::move(call);
  ++statement_;
  sent_at_ = loop_.now();
  look_at_ = sent_at_ + options_.patience;
  slow_told_ = false;
  if (waiting_.has_movable()) watch_time();
  session_->send(sent_->statement, [this](const Answer& answer) { answered(answer); });
}

void Link::answered(const Answer& answer) {
  Call call = std::move(*std::exchange(sent_, std::nullopt));
  inquiring_ = false;
  greeted_until_ = loop_.now() + options_.patience;
  round_trip_ = std::chrono::duration_cast<std::chrono::microseconds>(loop_.now() - sent_at_);
  if (!answer && repeats(call, answer.error())) {
    const bool elsewhere = is_another_server(answer.error().sqlstate);
    waiting_.push_front(std::move(call));
    if (elsewhere) close(answer.error().message);
    return watch_time();
  }
  base::AllCalls calls;
  calls.make([this] { pump(); });  // the server works on the next one meanwhile
  if (stage_ == Stage::greeting) calls.make([this] { watch_time(); });
  calls.make([&] { call.answer(answer); });
  calls.check();
}

// What is asked while a connection is greeted is the greeter's to judge.
bool Link::repeats(Call& call, const Fault& fault) {
  if (fault.kind == Fault::Kind::unknown) return call.done && call.is_read() && stage_ == Stage::up;
  if (fault.kind != Fault::Kind::refused || !call.done || stage_ != Stage::up) return false;
  if (is_another_server(fault.sqlstate)) return true;
  if (!is_momentary(fault.sqlstate) || call.repeats >= options_.repeats) return false;
  const auto pause =
      std::chrono::duration_cast<base::Duration>(std::chrono::milliseconds(20 << call.repeats) * (0.5 + random()));
  if (loop_.now() + pause >= call.deadline) return false;
  ++call.repeats;
  repeat_pause_ = loop_.after(pause, [this] { pump(); });
  return true;
}

void Link::watch_time() {
  std::optional<base::TimePoint> next;
  const auto consider = [&](std::optional<base::TimePoint> time) {
    if (time && (!next || *time < *next)) next = time;
  };
  if (stage_ == Stage::greeting && !sent_) consider(greeted_until_);
  consider(urgent_.deadline());
  consider(waiting_.deadline());
  if (sent_ && sent_->done) consider(sent_->deadline);
  if (sent_) consider(look_at_);
  if (sent_ && waiting_.has_movable() && !slow_told_) consider(sent_at_ + options_.slow);
  if (!next || (tick_ && tick_at_ <= *next)) return;
  tick_at_ = *next;
  tick_ = loop_.at(*next, [this] { check_time(); });
}

void Link::check_time() {
  const auto there = lifetime_.watch();
  const base::TimePoint now = loop_.now();
  if (stage_ == Stage::greeting && (sent_ ? sent_->deadline : greeted_until_) <= now) {
    close("the server did not answer in time");
  }
  if (there() && sent_ && sent_->deadline <= now)
    sent_->answer(tl::unexpected(unknown("the database did not answer in time")));
  if (there() && is_slow() && waiting_.has_movable() && !std::exchange(slow_told_, true) && events_.slow)
    events_.slow();
  if (there()) expire(urgent_, now);
  if (there()) expire(waiting_, now);
  if (there() && sent_ && look_at_ <= now) look_after(now);
  if (!there()) return;
  pump();
  watch_time();
}

void Link::expire(CallQueue& queue, base::TimePoint now) {
  const auto there = lifetime_.watch();
  base::AllCalls calls;
  while (there() && queue.deadline() && *queue.deadline() <= now) {
    calls.make([&] { queue.pop().answer(tl::unexpected(never("the database could not be asked in time"))); });
  }
  calls.check();
}

void Link::look_after(base::TimePoint now) {
  if (inquiring_ || !events_.inquire) return close("the server does not answer");
  inquiring_ = true;
  look_at_ = now + options_.inquiry;
  events_.inquire(session_->server_process(),
                  lifetime_.bind([this, asked = statement_](std::optional<bool> works) { told(asked, works); }));
}

void Link::told(std::uint64_t statement, std::optional<bool> works) {
  if (statement != statement_ || !sent_ || !inquiring_ || !works) return;
  if (!*works) return close("the server does not work on what it was sent");
  inquiring_ = false;  // until look_at_, and then it is asked after again
}

double Link::random() {
  static thread_local std::minstd_rand numbers{std::random_device()()};
  return std::uniform_real_distribution<double>(0, 1)(numbers);
}

}  // namespace duet::task::postgres
