#include "app/client/task_follower.h"

#include <algorithm>
#include <utility>

#include <boost/json/array.hpp>

#include "app/view/task_view.h"
#include "app/words/base64.h"
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

}  // namespace

TaskFollower::TaskFollower(DaemonClient& daemon, std::string id, Print print)
    : calls_(daemon), id_(std::move(id)), print_(std::move(print)) {
  daemon.client().on_any([this](std::string_view event, std::string_view params) { take(event, params); });
}

void TaskFollower::take(std::string_view event, std::string_view params) {
  news_ = true;
  if (event == "event.overflow") overflowed_ = true;
  const boost::json::value parsed = rpc::parse_value(params);
  if (!parsed.is_object() || member_text(parsed.get_object(), "taskId") != id_) return;
  const object& told = parsed.get_object();
  if (event == "event.taskStarted") output_end_.reset();  // the next attempt's goes on behind it
  if (event == "event.taskOutput") take_output(told);
  const bool ended = event == "event.taskCompleted" || event == "event.taskFailed" || event == "event.taskCancelled";
  if (!ended) return;
  end_ = told;
  (*end_)["id"] = id_;
  if (!last_moment_) last_moment_ = calls_.daemon().client().loop().now() + for_the_rest;
}

// The piece behind the last one is empty. What the events hold is text: bytes that are none are replaced in it.
void TaskFollower::take_output(const object& piece) {
  const boost::json::value* const offset = piece.if_contains("offset");
  if (offset == nullptr) return;
  const auto at = offset->to_number<std::uint64_t>();
  const std::string data = member_text(piece, "data");
  if (data.empty()) output_end_ = at;
  if (at != heard_from_ + heard_.size() || heard_.size() > most_heard) {
    heard_.clear();
    heard_from_ = at;
  }
  heard_ += data;
}

// A daemon that ends its tasks and stops may be gone before it was asked for the last of their output.
void TaskFollower::print_what_was_heard() {
  const bool is_the_rest = end_ && output_end_ && heard_from_ <= offset_ && offset_ < *output_end_ &&
                           heard_from_ + heard_.size() == *output_end_ && heard_.find(replacement) == heard_.npos;
  if (!is_the_rest) return;
  print_(std::string_view(heard_).substr(offset_ - heard_from_));
  offset_ = *output_end_;
}

bool TaskFollower::has_everything() const { return end_ && (done_ || (output_end_ && offset_ >= *output_end_)); }

void TaskFollower::print_output() {
  if (!drain()) throw Failure("the daemon went away", exit_code::no_daemon);
}

object TaskFollower::follow() {
  const std::string params = rpc::to_text(object{{"taskId", id_}});
  std::optional<std::string> record;
  while (!subscribe() || !stay() || !(record = calls_.ask("task.get", params, calls_.daemon().patience()))) {
    print_what_was_heard();
    if (has_everything()) return *end_;  // of a daemon that stopped, and ended its tasks before
    calls_.reconnect();
  }
  return rpc::parse_value(*record).as_object();
}

// False, here and below: the connection was lost.
bool TaskFollower::subscribe() {
  overflowed_ = false;
  const std::string params = rpc::to_text(object{{"taskIds", boost::json::array{id_}}});
  const bool subscribed = calls_.ask("events.subscribe", params, calls_.daemon().patience()).has_value();
  last_moment_.reset();  // of another connection
  return subscribed;
}

bool TaskFollower::stay() {
  for (;;) {
    news_ = false;
    if (overflowed_ && !subscribe()) return false;  // first: nothing tells of what is written before it
    if (!drain()) return false;
    if (done_ || given_up_) return true;
    if (!wait_for_news()) return false;
  }
}

bool TaskFollower::drain() {
  for (bool more = true; more && !done_;) {
    const std::string params = rpc::to_text(object{{"taskId", id_}, {"offset", offset_}, {"encoding", "base64"}});
    const auto result = calls_.ask("task.output", params, calls_.daemon().patience());
    if (!result) return false;
    const object piece = rpc::parse_value(*result).as_object();
    print_piece(piece);
    const auto next = piece.at("next").to_number<std::uint64_t>();
    more = next > offset_;
    offset_ = std::max(offset_, next);
    done_ = piece.at("done").as_bool();
  }
  return true;
}

void TaskFollower::print_piece(const object& piece) {
  const auto offset = piece.at("offset").to_number<std::uint64_t>();
  if (offset > offset_) {
    const std::string dropped = "[" + std::to_string(offset - offset_) + " bytes dropped]\n";
    print_((last_byte_ == '\n' ? "" : "\n") + dropped);
    last_byte_ = '\n';
  }
  const auto bytes = from_base64(piece.at("data").as_string());
  if (!bytes) throw Failure("the daemon's answer cannot be read: task.output gave no base64");
  if (bytes->empty()) return;
  print_(*bytes);
  last_byte_ = bytes->back();
}

bool TaskFollower::wait_for_news() {
  peer::Client& client = calls_.daemon().client();
  base::Duration patience = calls_.time_left();
  if (last_moment_)
    patience = std::min(patience, std::max(*last_moment_ - client.loop().now(), base::Duration::zero()));
  if (client.wait_for([this] { return news_; }, patience)) return true;
  if (!client.is_connected()) return false;
  if (!last_moment_ || calls_.time_left() == base::Duration::zero()) throw not_ended(id_);
  given_up_ = true;
  return true;
}

std::string await_end(DaemonClient& daemon, const std::string& id) {
  SteadyCalls calls(daemon);
  const std::string params = rpc::to_text(object{{"taskId", id}});
  for (;;) {
    const peer::Outcome outcome = daemon.ask("task.wait", params, calls.time_left());
    using Cause = peer::Outcome::Cause;
    if (outcome.cause == Cause::timed_out) throw not_ended(id);
    if (outcome.cause == Cause::answered) return outcome.result;
    if (!SteadyCalls::daemon_has_gone(outcome)) throw DaemonClient::failure_of("task.wait", outcome);
    calls.reconnect();
  }
}

}  // namespace duet::app
