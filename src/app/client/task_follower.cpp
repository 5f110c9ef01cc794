#include "app/client/task_follower.h"

#include <algorithm>
#include <utility>

#include <boost/json/array.hpp>

#include "app/client/refusal_text.h"
#include "app/view/task_view.h"
#include "duet/base/base64.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;

// After a task's end its processes are ended, which takes the daemon 5 s at most; then the output is closed.
constexpr std::chrono::seconds for_the_rest(10);
constexpr std::size_t most_heard = std::size_t{1} << 20;
constexpr std::string_view replacement = "\xEF\xBF\xBD";

Failure not_ended(const std::string& id) {
  return Failure(id + " has not ended in the time that --timeout gave", exit_code::no_answer);
}

std::int64_t attempts_of(const object& told) {
  const boost::json::value* const attempts = told.if_contains("attempts");
  return attempts == nullptr ? 0 : attempts->to_number<std::int64_t>();
}

// Where it was begun to read.
std::uint64_t begin_of(const object& piece) {
  const boost::json::value* const dropped = piece.if_contains("dropped");
  const std::uint64_t missing = dropped == nullptr ? 0 : dropped->to_number<std::uint64_t>();
  return piece.at("offset").to_number<std::uint64_t>() - missing;
}

}  // namespace

TaskFollower::TaskFollower(DaemonClient& daemon, const std::vector<std::string>& ids, Print print, OutputPart part)
    : calls_(daemon), print_(std::move(print)), stream_(std::move(part.stream)) {
  for (const std::string& id : ids) {
    if (find(id) == nullptr) tasks_.push_back({.id = id, .offset = part.from, .tail = part.tail});
  }
  daemon.client().on_any([this](std::string_view event, std::string_view params) { take(event, params); });
}

TaskFollower::Followed* TaskFollower::find(const std::string& id) {
  const auto found = std::ranges::find(tasks_, id, &Followed::id);
  return found == tasks_.end() ? nullptr : &*found;
}

void TaskFollower::expect_news_of_all() {
  for (Followed& task : tasks_) task.news = true;
}

void TaskFollower::take(std::string_view event, std::string_view params) {
  if (event == "event.overflow") overflowed_ = true;
  const boost::json::value parsed = rpc::parse_value(params);
  Followed* const task = parsed.is_object() ? find(member_text(parsed.get_object(), "taskId")) : nullptr;
  if (task == nullptr || overflowed_) expect_news_of_all();
  if (task != nullptr) take_of(*task, event, parsed.get_object());
}

// It was restarted in place, and its output goes on; or this is old news, and the record was newer.
void TaskFollower::Followed::begin_again() {
  news = true;
  done = given_up = false;
  if (record) before = std::exchange(record, std::nullopt);
  end.reset();
  last_moment.reset();
}

// The daemon no longer knows it. False: that leaves open how it ended, or what it wrote.
bool TaskFollower::Followed::end_as_told() {
  const std::optional<object> known = record ? record : before;
  const bool was_old_news = known && (!end || attempts_of(*end) <= attempts_of(*known));
  const bool is_read = output_end ? offset >= *output_end : was_old_news;
  if (!is_read || (!end && !known)) return false;
  record = was_old_news ? known : end;
  return done = true;
}

void TaskFollower::take_of(Followed& task, std::string_view event, const object& told) {
  task.news = true;
  if (event == "event.taskQueued" || event == "event.taskStarted") task.begin_again();
  if (event == "event.taskStarted") task.output_end.reset();  // the next attempt's goes on behind it
  if (event == "event.taskStarted" && task.before && attempts_of(told) > attempts_of(*task.before)) task.before.reset();
  if (event == "event.taskOutput") take_output(task, told);
  const bool ended = event == "event.taskCompleted" || event == "event.taskFailed" || event == "event.taskCancelled";
  if (!ended) return;
  task.end = told;
  (*task.end)["id"] = task.id;
  if (!task.last_moment) task.last_moment = calls_.daemon().client().loop().now() + for_the_rest;
}

// The piece behind the last one is empty. What the events hold is text: bytes that are none are replaced in it.
void TaskFollower::take_output(Followed& task, const object& piece) {
  const boost::json::value* const offset = piece.if_contains("offset");
  if (offset == nullptr) return;
  const auto at = offset->to_number<std::uint64_t>();
  const std::string data = member_text(piece, "data");
  if (data.empty()) task.output_end = at;
  if (at != task.heard_from + task.heard.size() || task.heard.size() > most_heard) {
    task.heard.clear();
    task.heard_from = at;
  }
  task.heard += data;
}

// A daemon that ends its tasks and stops may be gone before it was asked for the last of their output.
void TaskFollower::print_what_was_heard(Followed& task) {
  const bool is_the_rest = stream_.empty() && task.end && task.output_end && task.heard_from <= task.offset &&
                           task.offset < *task.output_end && task.heard_from + task.heard.size() == *task.output_end &&
                           task.heard.find(replacement) == std::string::npos;
  if (!is_the_rest) return;
  print_(task.id, std::string_view(task.heard).substr(task.offset - task.heard_from));
  task.offset = *task.output_end;
}

void TaskFollower::print_output() {
  for (Followed& task : tasks_) {
    if (!drain(task)) throw Failure("the daemon went away", exit_code::no_daemon);
  }
}

std::vector<object> TaskFollower::follow() {
  while (!subscribe() || !stay()) {
    for (Followed& task : tasks_) print_what_was_heard(task);
    if (std::ranges::all_of(tasks_, &Followed::has_everything)) break;  // of a daemon that ended its tasks and stopped
    calls_.reconnect();
  }
  std::vector<object> records;
  for (const Followed& task : tasks_) records.push_back(task.record ? *task.record : *task.end);
  return records;
}

// False, here and below: the connection was lost.
bool TaskFollower::subscribe() {
  overflowed_ = false;
  boost::json::array ids;
  for (const Followed& task : tasks_) ids.emplace_back(task.id);
  const std::string params = rpc::to_text(object{{"taskIds", std::move(ids)}});
  const bool subscribed = calls_.ask("events.subscribe", params, calls_.daemon().patience()).has_value();
  for (Followed& task : tasks_) task.last_moment.reset();  // of another connection
  expect_news_of_all();
  return subscribed;
}

bool TaskFollower::stay() {
  for (;;) {
    if (overflowed_ && !subscribe()) return false;  // first: nothing tells of what is written before it
    if (!drain_those_with_news() || !read_records()) return false;
    if (std::ranges::all_of(tasks_, &Followed::is_over)) return true;
    if (!wait_for_news()) return false;
  }
}

bool TaskFollower::drain_those_with_news() {
  for (Followed& task : tasks_) {
    if (std::exchange(task.news, false) && !task.is_over() && !drain(task)) return false;
  }
  return true;
}

bool TaskFollower::drain(Followed& task) {
  for (bool more = true; more && !task.done;) {
    const auto piece = read_piece(task);
    if (!piece) return task.done;
    if (std::exchange(task.tail, std::nullopt)) task.offset = begin_of(*piece);
    print_piece(task, *piece);
    const auto next = piece->at("next").to_number<std::uint64_t>();
    more = next > task.offset;
    task.offset = std::max(task.offset, next);
    task.done = piece->at("done").as_bool();
  }
  return true;
}

// Nothing: the connection was lost, or the task is gone and done.
std::optional<object> TaskFollower::read_piece(Followed& task) {
  object params{{"taskId", task.id}, {"encoding", "base64"}};
  params[task.tail ? "fromEnd" : "offset"] = task.tail.value_or(task.offset);
  if (!stream_.empty()) params["stream"] = stream_;  // which a daemon of version 0.1 does not know
  const peer::Outcome outcome = calls_.outcome_of("task.output", rpc::to_text(params), calls_.daemon().patience());
  if (outcome.cause == peer::Outcome::Cause::answered) return rpc::parse_value(outcome.result).as_object();
  if (SteadyCalls::daemon_has_gone(outcome)) return std::nullopt;
  if (!is_unknown_task(outcome)) throw DaemonClient::failure_of("task.output", outcome);
  print_what_was_heard(task);
  if (!task.end_as_told()) throw DaemonClient::failure_of("task.output", outcome);
  return std::nullopt;
}

// At once: by the time the last of them ends, others may have been removed.
bool TaskFollower::read_records() {
  for (Followed& task : tasks_) {
    if (task.is_over() && !task.record && !read_record(task)) return false;
  }
  return true;
}

bool TaskFollower::read_record(Followed& task) {
  const std::string params = rpc::to_text(object{{"taskId", task.id}});
  const base::Duration patience = std::min<base::Duration>(calls_.daemon().patience(), calls_.time_left());
  const peer::Outcome outcome = calls_.outcome_of("task.get", params, patience);
  if (SteadyCalls::daemon_has_gone(outcome)) return false;
  if (is_unknown_task(outcome) && task.end) return task.record = task.end, true;
  if (outcome.cause != peer::Outcome::Cause::answered) throw DaemonClient::failure_of("task.get", outcome);
  const object record = rpc::parse_value(outcome.result).as_object();
  if (!has_ended(record)) return task.begin_again(), true;  // we have not heard of it yet
  task.record = record;
  return true;
}

void TaskFollower::print_piece(Followed& task, const object& piece) {
  const boost::json::value* const told = piece.if_contains("dropped");
  const auto offset = piece.at("offset").to_number<std::uint64_t>();
  std::uint64_t missing = offset > task.offset ? offset - task.offset : 0;
  if (!stream_.empty()) missing = told != nullptr ? told->to_number<std::uint64_t>() : 0;  // else the other one's
  if (missing > 0) {
    const std::string dropped = "[" + std::to_string(missing) + " bytes dropped]\n";
    print_(task.id, (task.last_byte == '\n' ? "" : "\n") + dropped);
    task.last_byte = '\n';
  }
  const auto bytes = base::from_base64(piece.at("data").as_string());
  if (!bytes) throw Failure("the daemon's answer cannot be read: task.output gave no base64");
  if (bytes->empty()) return;
  print_(task.id, *bytes);
  task.last_byte = bytes->back();
}

base::Duration TaskFollower::patience_for_news() {
  base::Duration patience = calls_.time_left();
  const base::TimePoint now = calls_.daemon().client().loop().now();
  for (const Followed& task : tasks_) {
    if (task.is_over() || !task.last_moment) continue;
    patience = std::min(patience, std::max(*task.last_moment - now, base::Duration::zero()));
  }
  return patience;
}

bool TaskFollower::wait_for_news() {
  peer::Client& client = calls_.daemon().client();
  const auto has_news = [this] { return std::ranges::any_of(tasks_, &Followed::news); };
  if (client.wait_for(has_news, patience_for_news())) return true;
  if (!client.is_connected()) return false;
  const base::TimePoint now = client.loop().now();
  for (Followed& task : tasks_) task.given_up = task.given_up || (task.last_moment && *task.last_moment <= now);
  if (calls_.time_left() == base::Duration::zero()) {
    throw not_ended(std::ranges::find_if_not(tasks_, &Followed::is_over)->id);
  }
  return true;
}

std::optional<std::string> await_end(SteadyCalls& calls, const std::string& id) {
  const std::string params = rpc::to_text(object{{"taskId", id}});
  for (;;) {
    const peer::Outcome outcome = calls.outcome_of("task.wait", params, calls.time_left());
    using Cause = peer::Outcome::Cause;
    if (outcome.cause == Cause::timed_out) throw not_ended(id);
    if (outcome.cause == Cause::answered) return outcome.result;
    if (is_unknown_task(outcome)) return std::nullopt;
    if (!SteadyCalls::daemon_has_gone(outcome)) throw DaemonClient::failure_of("task.wait", outcome);
    calls.reconnect();
  }
}

}  // namespace duet::app
