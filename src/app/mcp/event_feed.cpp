#include "app/mcp/event_feed.h"

#include <array>
#include <utility>

#include <boost/json/array.hpp>

#include "duet/base/log_sink.h"
#include "duet/rpc/value.h"

namespace duet::app::mcp {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

// All but the output of tasks, which is much and is asked for task by task.
constexpr std::array<std::string_view, 21> kinds = {
    "taskQueued",     "taskStarted",     "taskCompleted",  "taskFailed",  "taskCancelled",   "taskHeld",
    "taskReleased",   "taskEdited",      "tasksRemoved",   "queuePaused", "queueResumed",    "agentHeld",
    "agentReleased",  "automationFired", "daemonStopping", "notice",      "settingsChanged", "approvalNeeded",
    "approvalDenied", "chainStopped",    "runFailed"};

constexpr std::string_view event_prefix = "event.";

std::string text_of(const value* text) {
  return text != nullptr && text->is_string() ? std::string(text->get_string()) : std::string();
}

}  // namespace

EventFeed::EventFeed(transport::Loop& loop, DaemonLink& link, Events events)
    : loop_(loop), link_(link), events_(std::move(events)), silent_(nullptr, base::Level::error) {}

EventFeed::~EventFeed() = default;

void EventFeed::want(std::function<void()> live) {
  if (is_live_) return live();
  waiting_.push_back(std::move(live));
  connect();
}

void EventFeed::set_outputs(std::set<std::string> tasks) {
  if (outputs_ == tasks) return;
  outputs_ = std::move(tasks);
  if (is_live_) subscribe();
}

void EventFeed::connect() {
  if (connection_ || is_connecting_) return;
  if (!events_.may_start()) return connect_if_running();
  is_connecting_ = true;
  link_.connect(lifetime_.bind([this](tl::expected<DaemonLink::Channel, ToolError> channel) {
    is_connecting_ = false;
    if (channel) return open(std::move(*channel));
    const auto waiting = std::exchange(waiting_, {});
    events_.on_failed(channel.error());
    for (const auto& live : waiting) live();
    if (events_.is_needed()) connect_if_running();
  }));
}

void EventFeed::connect_if_running() {
  constexpr std::chrono::milliseconds between_tries{200};
  if (connection_) return;
  if (DaemonLink::Channel channel = link_.try_connect()) return open(std::move(channel));
  was_away_ = true;  // that a daemon comes is news
  retry_ = loop_.after(between_tries, [this] {
    if (events_.is_needed()) connect_if_running();
  });
}

void EventFeed::open(DaemonLink::Channel channel) {
  peer::ConnectionEvents events;
  events.on_closed = [this](peer::Ending) { lost(); };
  events.conversation.on_notification = [this](std::string_view method, std::string_view params) {
    take_event(method, params);
  };
  connection_ = std::make_unique<peer::Connection>(loop_, std::move(channel), peer::Protocol::json_lines_client(),
                                                   no_methods_, silent_, std::move(events));
  connection_->open();
  subscribe();
}

void EventFeed::subscribe() {
  object wish{{"kinds", array(kinds.begin(), kinds.end())}};
  if (next_) wish["since"] = *next_;
  if (!outputs_.empty()) wish["outputOf"] = array(outputs_.begin(), outputs_.end());
  connection_->call("events.subscribe", rpc::Json(wish), base::Duration::max(),
                    [this](const peer::Outcome& outcome) { take_subscription(outcome); });
}

// Its answer comes before what it replays.
void EventFeed::take_subscription(const peer::Outcome& outcome) {
  if (outcome.cause != peer::Outcome::Cause::answered) return;
  const object answer = rpc::parse_value(outcome.result).as_object();
  const std::string epoch = text_of(answer.if_contains("epoch"));
  const bool is_other = !epoch_.empty() && epoch != epoch_;
  const bool has_missed = (next_ && answer.contains("missed")) || std::exchange(was_away_, false);
  epoch_ = epoch;
  if (!next_ || is_other || has_missed) next_ = answer.at("next").to_number<std::uint64_t>();
  is_live_ = true;
  if (is_other || has_missed) events_.on_gap();
  for (const auto& live : std::exchange(waiting_, {})) live();
}

void EventFeed::take_event(std::string_view method, std::string_view params) {
  if (!method.starts_with(event_prefix)) return;
  const std::string_view kind = method.substr(event_prefix.size());
  const value told = rpc::parse_value(params);
  const object& event = told.as_object();
  if (const value* const seq = event.if_contains("seq"); seq != nullptr && kind != "overflow") {
    next_ = seq->to_number<std::uint64_t>() + 1;
  }
  if (kind == "overflow") return subscribe();  // from where it broke off
  if (kind == "daemonStopping") link_.note_stopping(event);
  events_.on_event(kind, event);
}

// Not destroyed in its own call.
void EventFeed::lost() {
  is_live_ = false;
  was_away_ = true;
  events_.on_event("daemonGone", {});
  dropping_ = loop_.deferred([this] {
    connection_.reset();
    if (events_.is_needed() || !waiting_.empty()) connect();
  });
}

}  // namespace duet::app::mcp
