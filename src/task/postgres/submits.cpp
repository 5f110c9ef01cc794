#include "task/postgres/submits.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

#include <boost/json/object.hpp>

#include "duet/base/all_calls.h"
#include "task/postgres/records.h"
#include "task/refusal.h"

namespace duet::task::postgres {
namespace {

std::string ids_text(const std::vector<TaskId>& ids) {
  std::string text;
  for (const TaskId id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}

std::size_t number_of(std::string_view text) {
  std::size_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The line's own word comes first: it may know that a call was never sent.
constexpr base::Duration grace = std::chrono::milliseconds(50);

Argument or_null(const std::string& text) { return text.empty() ? Argument() : Argument(text); }

}  // namespace

void Submits::add(Entry entry, Done done, std::optional<base::TimePoint> asked) {
  const std::size_t bytes = 512 + entry.body.size() + entry.prompt.size() + entry.env.size() + entry.metadata.size();
  if (waiting_bytes_ + bytes > most_waiting_bytes) {
    return done(tl::unexpected(uncertain({}, "more waits to be written than it can take")));
  }
  ++added_;
  waiting_bytes_ += bytes;
  const base::TimePoint until = asked.value_or(loop_.now()) + patience;
  // One that had to wait elsewhere comes before those that were asked for after it.
  const auto place = std::ranges::upper_bound(waiting_, until, {}, &Waiting::until);
  const bool is_first = place == waiting_.begin();
  waiting_.insert(
      place, {.id = random_uuid(), .entry = std::move(entry), .done = std::move(done), .until = until, .bytes = bytes});
  if (!timer_ || is_first) set_timer();
  // What else comes in this turn goes along.
  if (!sending_) sending_ = loop_.deferred([this] { send(); });
}

void Submits::after(std::function<void()> call) {
  if (answered_ == added_) return call();
  afters_.emplace_back(added_, std::move(call));
}

void Submits::send() {
  if (asking_ || pause_ || !membership_.is_joined() || !line_.is_up(Line::Way::work)) return;
  std::erase_if(in_flight_, [](const Waiting& waiting) { return !waiting.done; });
  for (Waiting& waiting : in_flight_) waiting.sent = true;
  if (in_flight_.empty()) load();
  if (in_flight_.empty()) return;
  membership_.call(Line::Way::work, "submit_v1", arguments_of(in_flight_),
                   lifetime_.bind(asking_.until([this](const Answer& answer) { take(answer); })));
}

void Submits::load() {
  std::size_t bytes = 0;
  const std::size_t most = singly_ > 0 ? 1 : most_at_once;
  while (!waiting_.empty() && in_flight_.size() < most && (in_flight_.empty() || bytes < most_bytes)) {
    bytes += waiting_.front().bytes;
    in_flight_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  singly_ -= std::min(singly_, in_flight_.size());
}

std::vector<Argument> Submits::arguments_of(const std::vector<Waiting>& batch) const {
  const auto column = [&batch](auto member) {
    std::vector<Argument> values;
    values.reserve(batch.size());
    for (const Waiting& waiting : batch) values.push_back(member(waiting.entry));
    return array_of(values);
  };
  std::vector<Argument> ids;
  ids.reserve(batch.size());
  for (const Waiting& waiting : batch) ids.emplace_back(waiting.id);
  return {array_of(ids),
          column([](const Entry& entry) { return or_null(entry.key); }),
          column([](const Entry& entry) { return Argument(entry.agent); }),
          column([](const Entry& entry) { return Argument(entry.group); }),
          column([](const Entry& entry) { return Argument(joined(entry.needs)); }),
          column([](const Entry& entry) { return argument_of(entry.own); }),
          column([](const Entry& entry) { return argument_of(entry.priority); }),
          column([](const Entry& entry) { return argument_of(entry.retries); }),
          column([](const Entry& entry) { return argument_of(static_cast<int>(entry.on_lost)); }),
          column([](const Entry& entry) { return argument_of(entry.delay); }),
          column([](const Entry& entry) { return argument_of(entry.not_before); }),
          column([](const Entry& entry) { return Argument(entry.prompt); }),
          column([](const Entry& entry) { return Argument(entry.metadata); }),
          column([](const Entry& entry) { return or_null(entry.labels); }),
          column([](const Entry& entry) { return Argument(entry.body); }),
          column([](const Entry& entry) { return or_null(entry.env); }),
          column([](const Entry& entry) { return Argument(ids_text(entry.after)); })};
}

void Submits::take(const Answer& answer) {
  base::AllCalls calls;
  calls.make([&] { answer ? take_rows(*answer) : put_back(std::exchange(in_flight_, {}), answer.error()); });
  calls.make([this] { send(); });
  calls.check();
}

void Submits::take_rows(const Result& rows) {
  const std::vector<Waiting>& batch = in_flight_;
  const int place = rows.column("place");
  const int lane = rows.column("lane");
  std::vector<tl::expected<Taken, rpc::Error>> answers(
      batch.size(), tl::unexpected(unavailable("store", "the queue's database gave no answer to it")));
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const auto at = static_cast<std::size_t>(rows.number(row, place).value_or(0)) - 1;
    if (at >= batch.size()) continue;
    answers[at] = taken_of(rows, row);
    if (answers[at]) answers[at]->again = batch[at].sent;
    // Refused now; but what was sent before over a connection that broke may still be carried out.
    if (!answers[at] && batch[at].sent) {
      answers[at] = tl::unexpected(uncertain(batch[at], answers[at].error().message()));
    }
    const bool is_new = answers[at] && (answers[at]->fresh || batch[at].sent);
    const Entry& entry = batch[at].entry;
    const std::int64_t now = base::milliseconds_of(loop_.clock().utc());
    const bool may_start = is_new && entry.delay.value_or(0) <= 0 && entry.not_before.value_or(now) <= now;
    if (may_start) membership_.wake(static_cast<std::int32_t>(rows.number(row, lane).value_or(0)), 1);
    if (entry.delay) membership_.sweep_in(std::chrono::milliseconds(*entry.delay + 1));
    if (entry.not_before) membership_.sweep_when(base::UtcTime(std::chrono::milliseconds(*entry.not_before)));
  }
  membership_.number_soon();
  std::vector<Waiting> taken = std::exchange(in_flight_, {});
  base::AllCalls calls;
  for (std::size_t at = 0; at < taken.size(); ++at) calls.make([&] { answer(taken[at], answers[at]); });
  calls.make([this] { answered(); });
  calls.check();
}

void Submits::answer(Waiting& waiting, const tl::expected<Taken, rpc::Error>& taken) {
  const Done done = std::exchange(waiting.done, nullptr);
  if (!done) return;
  waiting_bytes_ -= waiting.bytes;
  ++answered_;
  done(taken);
}

tl::expected<Submits::Taken, rpc::Error> Submits::taken_of(const Result& rows, std::size_t row) const {
  const std::string_view refusal = rows.text(row, rows.column("refusal"));
  constexpr std::string_view unknown = "unknown:";
  if (refusal.starts_with(unknown)) {
    return tl::unexpected(unknown_task("task-" + std::string(refusal.substr(unknown.size()))));
  }
  constexpr std::string_view full = "full:";
  if (refusal.starts_with(full)) return tl::unexpected(queue_full(number_of(refusal.substr(full.size()))));
  const bool is_other_env = refusal == "env";
  if (!refusal.empty() && !is_other_env) return tl::unexpected(unavailable("store", refusal));
  return Taken{.id = static_cast<TaskId>(rows.number(row, rows.column("id")).value_or(0)),
               .state = static_cast<State>(rows.number(row, rows.column("state")).value_or(0)),
               .fresh = rows.flag(row, rows.column("fresh")),
               .body = std::string(rows.text(row, rows.column("body"))),
               .other_env = is_other_env};
}

// What was sent under its id may be there already: it is sent again under it, until its time is up.
void Submits::put_back(std::vector<Waiting> batch, const Fault& fault) {
  last_problem_ = fault.message;
  // What it says, and not how the server is.
  const bool is_bad = std::ranges::any_of(std::array{"22", "23", "54"},
                                          [&](const char* kind) { return fault.sqlstate.starts_with(kind); });
  if (is_bad && batch.size() == 1) {
    answer(batch.front(), tl::unexpected(uncertain(batch.front(), fault.message)));
    return answered();
  }
  if (is_bad) singly_ = batch.size();  // the others are as good as ever
  const bool is_sent = fault.kind == Fault::Kind::unknown;
  for (auto waiting = batch.rbegin(); waiting != batch.rend(); ++waiting) {
    if (!waiting->done) continue;
    waiting->sent = waiting->sent || is_sent;
    waiting_.insert(std::ranges::lower_bound(waiting_, waiting->until, {}, &Waiting::until), std::move(*waiting));
  }
  give_up_late();
  if (is_sent || is_bad) return;                                      // the line tells when it is up again
  pause_ = loop_.after(std::chrono::seconds(1), [this] { send(); });  // a full disk, say
}

// Also what is on its way: whoever waited behind another call has less time left than the call.
void Submits::give_up_late() {
  const base::TimePoint now = loop_.now();
  std::vector<Waiting> late;
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    if (waiting->until > now) {
      ++waiting;
      continue;
    }
    late.push_back(std::move(*waiting));
    waiting = waiting_.erase(waiting);
  }
  for (Waiting& waiting : in_flight_) {
    if (!waiting.done || waiting.until + grace > now) continue;
    late.push_back({.done = std::exchange(waiting.done, nullptr), .sent = true, .bytes = waiting.bytes});
  }
  set_timer();
  for (Waiting& waiting : late) answer(waiting, tl::unexpected(uncertain(waiting, last_problem_)));
  answered();
}

void Submits::set_timer() {
  std::optional<base::TimePoint> next;
  for (const Waiting& waiting : in_flight_) {
    if (waiting.done && (!next || waiting.until + grace < *next)) next = waiting.until + grace;
  }
  if (!waiting_.empty() && (!next || waiting_.front().until < *next)) next = waiting_.front().until;
  timer_.cancel();
  if (next) timer_ = loop_.at(*next, [this] { give_up_late(); });
}

void Submits::answered() {
  while (!afters_.empty() && afters_.front().first <= answered_) {
    const std::function<void()> call = std::move(afters_.front().second);
    afters_.pop_front();
    call();
  }
}

rpc::Error Submits::uncertain(const Waiting& waiting, const std::string& why) {
  const rpc::Error plain = unavailable("store", why);
  const boost::json::object data{{"subsystem", "store"}, {"outcome", waiting.sent ? "unknown" : "none"}};
  return {plain.code(), plain.message(), data};
}

}  // namespace duet::task::postgres
