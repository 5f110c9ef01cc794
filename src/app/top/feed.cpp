#include "app/top/feed.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/json/array.hpp>

#include "app/top/screen_text.h"
#include "duet/base/base64.h"
#include "duet/rpc/value.h"

namespace duet::app::top {
namespace {

using boost::json::object;
using boost::json::value;
using task::TaskId;
using namespace std::chrono_literals;

constexpr auto patience = 30s;
constexpr auto between_refreshes = 250ms;
constexpr auto between_attempts = 500ms;
constexpr auto between_statuses = 5s;
constexpr auto is_silent_after = 10s;
constexpr TaskId most_at_once = 1'000;  // records
constexpr TaskId most_of_queue = 4'000;
constexpr TaskId least_of_queue = 200;  // that wait for their turn only
constexpr std::uint64_t longest_line = 2'048;

object beginning_of_queue(TaskId limit) { return {{"state", "queued"}, {"limit", limit}, {"sort", "priority"}}; }

bool is_answer(const peer::Outcome& outcome) { return outcome.cause == peer::Outcome::Cause::answered; }

}  // namespace

Feed::Feed(DaemonClient& daemon, std::string place, std::function<void()> on_change)
    : daemon_(daemon), on_change_(std::move(on_change)), link_{.place = std::move(place)} {
  daemon_.client().on_any(
      lifetime_.bind([this](std::string_view method, std::string_view params) { take(method, params); }));
  load();
}

bool Feed::ask(std::string_view method, const object& params, OnOutcome callback) {
  if (!daemon_.is_connected()) return false;
  daemon_.client().call_later(method, params, lifetime_.bind(std::move(callback)), patience);
  return true;
}

bool Feed::inquire(std::string_view method, const object& params, OnOutcome callback) {
  return ask(method, params, [this, session = session_, callback = std::move(callback)](const peer::Outcome& outcome) {
    if (session == session_ && outcome.cause != peer::Outcome::Cause::disconnected) callback(outcome);
  });
}

// ---- everything, of a daemon that we have just found

void Feed::load() {
  ++session_;
  loading_.emplace();
  parts_to_come_ = 0;
  asked_for_output_.clear();
  output_ends_.clear();
  queue_is_stale_ = false;
  asks_for_queue_ = false;
  status_came_ = daemon_.client().loop().now();
  status_asked_ = status_came_;
  const auto taken_by = [this](void (Board::*taker)(const object&)) {
    return [this, taker](const value& answer) {
      if (answer.is_object()) (filling().*taker)(answer.get_object());
    };
  };
  load_part("daemon.status", {}, taken_by(&Board::take_status));
  load_part("task.stats", {}, taken_by(&Board::take_counts));
  load_part("queue.status", {}, taken_by(&Board::take_queue));
  load_list({{"state", "running"}, {"limit", most_at_once}});
  load_part("task.list", beginning_of_queue(most_at_once),
            [this](const value& answer) { take_beginning_of_queue(answer, most_at_once); });
  load_list({{"limit", Board::most_ended}, {"sort", "ended"}});
}

void Feed::load_list(const object& params) {
  load_part("task.list", params, [this](const value& answer) { take_records(answer); });
}

// A daemon that lacks a method, or refuses it now, leaves that part empty; one that hangs is asked for all of it again.
void Feed::load_part(std::string_view method, const object& params, std::function<void(const value&)> use) {
  const bool asked = inquire(method, params, [this, use = std::move(use)](const peer::Outcome& outcome) {
    if (outcome.cause == peer::Outcome::Cause::timed_out) return load();
    if (is_answer(outcome)) use(rpc::parse_value(outcome.result));
    part_has_come();
  });
  if (asked) ++parts_to_come_;
}

void Feed::part_has_come() {
  if (--parts_to_come_ > 0) return;
  board_ = std::move(*loading_);
  loading_.reset();
  link_.trouble.clear();
  status_asked_.reset();
  if (!board_.stale().empty()) refresh_soon();
  load_more_of_queue();
  on_change_();
}

// ---- what happens

void Feed::take(std::string_view method, std::string_view params) {
  constexpr std::string_view prefix = "event.";
  if (!method.starts_with(prefix)) return;
  const std::string_view kind = method.substr(prefix.size());
  if (kind == "overflow") return load_anew();
  const value parsed = rpc::parse_value(params);
  if (!parsed.is_object()) return;
  const object& told = parsed.get_object();
  if (kind == "daemonStopping" && told.contains("restarting")) link_.trouble = "The daemon is being restarted.";
  const bool is_of_task = filling().take_event(kind, told);
  if (!is_of_task) queue_is_stale_ = true;
  refresh_soon();
  on_change_();
}

// More happened than we read. What was missed is not asked for: all of it is there as it is now.
void Feed::load_anew() {
  reconnecting_ = daemon_.client().loop().after(0ms, [this] { daemon_.client().disconnect(); });
}

void Feed::refresh_queue() {
  queue_is_stale_ = true;
  refresh_soon();
}

void Feed::refresh_soon() {
  if (!refreshing_) refreshing_ = daemon_.client().loop().after(between_refreshes, [this] { refresh(); });
}

void Feed::refresh() {
  inquire("task.stats", {}, [this](const peer::Outcome& outcome) {
    if (!is_answer(outcome)) return;
    if (const value counts = rpc::parse_value(outcome.result); counts.is_object()) {
      filling().take_counts(counts.get_object());
      load_more_of_queue();
      on_change_();
    }
  });
  if (std::exchange(queue_is_stale_, false)) {
    inquire("queue.status", {}, [this](const peer::Outcome& outcome) {
      if (!is_answer(outcome)) return;
      if (const value queue = rpc::parse_value(outcome.result); queue.is_object()) {
        filling().take_queue(queue.get_object());
        on_change_();
      }
    });
  }
  ask_for_stale();
}

// Of a long queue only the beginning is known. When that has been worked off, the next part is asked for; what is kept
// back comes in addition, since it stays where it is.
void Feed::load_more_of_queue() {
  const TaskId known = board_.queued().size();
  if (loading_ || asks_for_queue_ || board_.counts().queued <= static_cast<std::int64_t>(known)) return;
  const TaskId kept_back = board_.count_kept_back();
  const TaskId limit = std::min(kept_back + most_at_once, most_of_queue);
  if (known - kept_back >= least_of_queue || known >= limit) return;
  asks_for_queue_ = inquire("task.list", beginning_of_queue(limit), [this, limit](const peer::Outcome& outcome) {
    asks_for_queue_ = false;
    if (is_answer(outcome)) take_beginning_of_queue(rpc::parse_value(outcome.result), limit);
    on_change_();
  });
}

void Feed::take_beginning_of_queue(const value& records, TaskId limit) {
  if (!records.is_array()) return;
  filling().take_beginning_of_queue(records.get_array(), records.get_array().size() < limit);
}

void Feed::take_records(const value& records) {
  if (!records.is_array()) return;
  for (const value& record : records.get_array()) {
    if (record.is_object()) filling().take_record(record.get_object());
  }
  on_change_();
}

// The newest ones first, which are new tasks as a rule and stand side by side. Prompts of lists are short.
void Feed::ask_for_stale() {
  const std::set<TaskId>& stale = filling().stale();
  if (stale.empty()) return;
  const TaskId last = *stale.rbegin();
  const TaskId first = std::max(*stale.begin(), last - std::min(last, most_at_once) + 1);
  const std::vector<TaskId> wanted(stale.lower_bound(first), stale.end());
  const object params{{"before", task::to_text(last + 1)}, {"limit", last - first + 1}};
  inquire("task.list", params, [this, wanted](const peer::Outcome& outcome) {
    if (!is_answer(outcome)) return;
    take_records(rpc::parse_value(outcome.result));
    for (const TaskId number : wanted) {
      const TaskRow* const row = filling().find(number);
      if (row != nullptr && !row->has_record) filling().forget(number);
    }
  });
  filling().asked_for(first, last);
  if (!filling().stale().empty()) refresh_soon();
}

// ---- now and then

void Feed::tick(const std::vector<TaskId>& running) {
  transport::Loop& loop = daemon_.client().loop();
  board_.let_pass(loop.clock().utc());
  if (!connected_) return;
  std::erase_if(output_ends_, [this](const auto& entry) {
    const TaskRow* const row = board_.find(entry.first);
    return row == nullptr || row->state != task::State::running;
  });
  for (const TaskId number : running) ask_for_output(number);
  if (status_asked_ && loop.now() - *status_asked_ >= is_silent_after) {
    link_.trouble = "The daemon does not answer.";
    on_change_();
  }
  if (status_asked_ || loop.now() - status_came_ < between_statuses) return;
  status_asked_ = loop.now();
  inquire("daemon.status", {}, [this](const peer::Outcome& outcome) { take_status(outcome); });
}

void Feed::take_status(const peer::Outcome& outcome) {
  if (outcome.cause == peer::Outcome::Cause::timed_out) {
    status_asked_ = daemon_.client().loop().now() - is_silent_after;
    inquire("daemon.status", {}, [this](const peer::Outcome& later) { take_status(later); });
    return;
  }
  status_asked_.reset();
  status_came_ = daemon_.client().loop().now();
  link_.trouble.clear();
  if (is_answer(outcome)) {
    const value status = rpc::parse_value(outcome.result);
    if (status.is_object()) filling().take_status(status.get_object());
  }
  on_change_();
}

// First where it ends, then the line there, if that is another one than last time.
void Feed::ask_for_output(TaskId number) {
  if (!asked_for_output_.insert(number).second) return;
  const object params{{"taskId", task::to_text(number)}, {"offset", behind_every_end}, {"limit", 1}};
  const bool asked = inquire("task.output", params, [this, number](const peer::Outcome& outcome) {
    asked_for_output_.erase(number);
    if (!is_answer(outcome)) return;
    const auto end = rpc::parse_value(outcome.result).at("next").to_number<std::uint64_t>();
    if (end > 0 && output_ends_[number] != end) read_last_line(number, end);
  });
  if (!asked) asked_for_output_.erase(number);
}

void Feed::read_last_line(TaskId number, std::uint64_t end) {
  const std::uint64_t size = std::min(end, longest_line);
  const object params{
      {"taskId", task::to_text(number)}, {"offset", end - size}, {"limit", size}, {"encoding", "base64"}};
  inquire("task.output", params, [this, number, end](const peer::Outcome& outcome) {
    if (!is_answer(outcome)) return;
    const value piece = rpc::parse_value(outcome.result);
    output_ends_[number] = end;
    const std::string line = last_line(base::from_base64(piece.at("data").as_string()).value_or(""));
    if (!line.empty()) board_.set_output(number, line);
    on_change_();
  });
}

void Feed::look_after_connection() {
  const bool is_lost = connected_ && !daemon_.is_connected();
  if (!is_lost && !std::exchange(attempt_is_due_, false)) return;
  daemon_.check_refusal();
  if (is_lost && loading_) {
    reconnect_later();  // one that goes before it has answered may do so for ever
  } else {
    reconnect();
  }
  on_change_();
}

// One that is there at once was left by ourselves, to load everything anew.
void Feed::reconnect() {
  connected_ = daemon_.try_connect();
  if (connected_) return load();
  reconnect_later();
}

void Feed::reconnect_later() {
  connected_ = false;
  link_.trouble = daemon_.is_far() ? "The connection is lost; trying again."
                                   : "The daemon is gone; waiting for the next one ('duet-rpc daemon start').";
  reconnecting_ = daemon_.client().loop().after(between_attempts, [this] { attempt_is_due_ = true; });
}

}  // namespace duet::app::top
