#include "app/mcp/event_replay.h"

#include <algorithm>
#include <utility>

#include <boost/json/array.hpp>

#include "duet/base/log_sink.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::object;
using boost::json::value;

}  // namespace

EventReplay::EventReplay(transport::Loop& loop, DaemonLink::Channel channel, std::optional<std::uint64_t> since,
                         Done done)
    : since_(since), done_(std::move(done)), silent_(nullptr, base::Level::error) {
  peer::ConnectionEvents events;
  events.on_closed = [this](peer::Ending) { finish(std::nullopt); };
  events.conversation.on_notification = [this](std::string_view method, std::string_view params) {
    take_event(method, params);
  };
  connection_ = std::make_unique<peer::Connection>(loop, std::move(channel), peer::Protocol::json_lines_client(),
                                                   no_methods_, silent_, std::move(events));
  connection_->open();
  object wish;
  if (since) wish["since"] = *since;
  connection_->call("events.subscribe", rpc::Json(wish), base::Duration::max(),
                    [this](const peer::Outcome& outcome) { take_subscription(outcome); });
  timer_ = loop.after(patience, [this] { end_ ? finish(std::move(result_)) : finish(std::nullopt); });
}

EventReplay::~EventReplay() = default;

void EventReplay::take_subscription(const peer::Outcome& outcome) {
  if (outcome.cause != peer::Outcome::Cause::answered) return finish(std::nullopt);
  const object answer = rpc::parse_value(outcome.result).as_object();
  end_ = answer.at("next").to_number<std::uint64_t>();
  result_.missed = answer.contains("missed");
  result_.next = *end_;
  if (!since_ || *since_ >= *end_) finish(std::move(result_));  // else the newest event tells that all have come
}

void EventReplay::take_event(std::string_view method, std::string_view params) {
  constexpr std::string_view prefix = "event.";
  if (!end_ || !since_ || !method.starts_with(prefix)) return;
  const object event = rpc::parse_value(params).as_object();
  const value* const seq = event.if_contains("seq");
  if (seq == nullptr) return;
  const auto number = seq->to_number<std::uint64_t>();
  if (number < *end_ && result_.events.size() < most_events) {
    object told{{"seq", number}, {"kind", method.substr(prefix.size())}};
    if (const value* const task = event.if_contains("taskId")) told["task_id"] = *task;
    result_.events.push_back(std::move(told));
    result_.next = number + 1;
  }
  if (number + 1 >= *end_ || result_.events.size() == most_events) finish(std::move(result_));
}

void EventReplay::finish(std::optional<Result> result) {
  timer_.cancel();
  if (const Done done = std::exchange(done_, {})) done(std::move(result));
}

}  // namespace duet::app::mcp
