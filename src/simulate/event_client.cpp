#include "simulate/event_client.h"

#include <algorithm>
#include <array>
#include <utility>

#include "duet/peer/server.h"
#include "duet/rpc/value.h"

namespace duet::simulate {

namespace {

namespace json = boost::json;

constexpr std::array<const char*, 6> kinds{"taskQueued", "taskStarted",   "taskCompleted",
                                           "taskFailed", "taskCancelled", "taskOutput"};

std::uint64_t number(const json::object& object, std::string_view name) {
  return object.at(name).to_number<std::uint64_t>();
}

}  // namespace

bool EventClient::Filter::wants(const task::Event& event) const {
  return (kinds.empty() || kinds.contains(event.kind)) && (tasks.empty() || tasks.contains(event.task));
}

bool EventClient::Filter::wants_output(task::TaskId id) const {
  return subscribed && (kinds.empty() || kinds.contains("taskOutput")) && (tasks.empty() || tasks.contains(id));
}

EventClient::EventClient(std::string name, Random chance, Model& model, Trace& trace)
    : name_(std::move(name)), chance_(chance), model_(model), trace_(trace) {}

std::shared_ptr<ClientWire> EventClient::connect(Oldest oldest) {
  wire_ = std::make_shared<ClientWire>();
  wire_->capacity = chance_.one_in(2) ? 64 * 1024 : chance_.between(100, 2000);
  oldest_ = std::move(oldest);
  filter_ = {};
  position_ = certain_from_ = model_.next_seq();
  trace_.note(name_ + " connects");
  return wire_;
}

void EventClient::leave() {
  if (!wire_) return;
  trace_.note(name_ + " leaves");
  wire_->wake_client = {};
  wire_->client_gone = true;
  if (wire_->wake_daemon) wire_->wake_daemon();
  hang_up();
}

void EventClient::hang_up() {
  wire_.reset();
  unread_.clear();
  asked_.clear();
  slow_things_ = 0;
  earlier_.clear();
  had_.clear();
  lost_ = false;
  output_read_.clear();
  follows_from_.reset();
  followed_.clear();
}

EventClient::Filter EventClient::some_filter() {
  Filter filter{.subscribed = true};
  if (chance_.one_in(2)) {
    for (const char* kind : kinds) {
      if (chance_.one_in(3)) filter.kinds.insert(kind);
    }
  }
  if (chance_.one_in(4)) {
    for (std::uint64_t i = chance_.between(1, 5); i > 0; --i)
      filter.tasks.insert(chance_.between(1, model_.count() + 2));
  }
  return filter;
}

std::optional<std::uint64_t> EventClient::some_since() {
  if (chance_.one_in(4)) return std::nullopt;
  return chance_.one_in(3) ? chance_.below(model_.next_seq() + 4) : seen_ + 1;
}

void EventClient::subscribe() {
  Asked asked{some_filter(), some_since(), model_.next_seq(), oldest_()};
  json::object params;
  if (asked.since) params["since"] = *asked.since;
  if (!asked.filter.kinds.empty()) {
    for (const std::string& kind : asked.filter.kinds) {
      params.emplace("kinds", json::array{})
          .first->value()
          .as_array()
          .emplace_back((chance_.one_in(2) ? "event." : "") + kind);
    }
  }
  for (const task::TaskId id : asked.filter.tasks) {
    params.emplace("taskIds", json::array{}).first->value().as_array().emplace_back(task::to_text(id));
  }
  trace_.note(name_ + " subscribes " + rpc::to_text(params));
  asked_.push_back(std::move(asked));
  send({{"id", "subscribe"}, {"method", "events.subscribe"}, {"params", std::move(params)}});
}

void EventClient::ask_slow_thing() {
  ++slow_things_;
  send({{"id", slow_method}, {"method", slow_method}});
}

void EventClient::send(const json::object& message) {
  json::object whole{{"jsonrpc", "2.0"}};
  for (const auto& member : message) whole.insert(member);
  wire_->to_daemon += rpc::to_text(whole) + '\n';
  if (wire_->wake_daemon) wire_->wake_daemon();
}

void EventClient::read(std::size_t most) {
  if (!wire_) return;
  unread_ += wire_->to_client.substr(0, most);
  wire_->to_client.erase(0, most);
  for (std::size_t end = 0; (end = unread_.find('\n')) != std::string::npos;) {
    const std::string line = unread_.substr(0, end + 1);
    unread_.erase(0, end + 1);
    take(line);
  }
  if (wire_->to_client.empty() && wire_->daemon_gone) return hang_up();
  if (wire_->wake_daemon) wire_->wake_daemon();
}

void EventClient::take(const std::string& line) {
  const json::value parsed = rpc::parse_value(line);
  const json::object& message = parsed.as_object();
  if (message.contains("error")) return fail("is refused: " + line);
  if (message.contains("result")) {
    if (message.at("id") != slow_method) return take_answer(message.at("result").as_object());
    if (slow_things_-- == 0) fail("is answered twice");
    return;
  }
  const json::object& params = message.at("params").as_object();
  const json::string& method = message.at("method").as_string();
  if (method == "event.overflow") return take_overflow(number(params, "seq"));
  if (lost_) return fail("gets something after it was told that it misses events: " + line);
  if (method == "event.taskOutput") return take_output(params);
  take_event(line, params);
}

void EventClient::take_answer(const json::object& answer) {
  if (asked_.empty()) return fail("is answered twice");
  const Asked asked = std::move(asked_.front());
  asked_.pop_front();
  const std::uint64_t next = number(answer, "next");
  trace_.note(name_ + " is subscribed " + rpc::to_text(answer));
  if (answer.at("epoch").as_string() != model_.epoch()) fail("is told of another epoch");
  if (next < asked.next_then || next > model_.next_seq()) fail("is told of a wrong next event");
  const bool missed = answer.contains("missed");
  if (missed != answer.contains("oldest") || (missed && !asked.since)) return fail("gets half an answer");
  const std::uint64_t oldest = missed ? number(answer, "oldest") : asked.oldest_then;
  if (oldest < asked.oldest_then || oldest > std::max(oldest_(), asked.oldest_then)) {
    fail("is told of a wrong oldest event");
  }
  const std::uint64_t first = std::max<std::uint64_t>(asked.since.value_or(1), 1);
  if (missed && first >= oldest && first <= next) fail("is told to have missed events that are there");
  if (!missed && asked.since && (first < oldest || first > next)) fail("is not told that it has missed events");
  go_on_from(asked, next, oldest);
}

// Without `since` the daemon goes on where it was: of what it passed by nobody knows, unless it was wanted all the
// time.
void EventClient::go_on_from(const Asked& asked, std::uint64_t next, std::uint64_t oldest) {
  if (asked.since) {
    position_ = std::clamp(std::max<std::uint64_t>(*asked.since, 1), oldest, next);
  } else if (lost_) {
    position_ = next;
  }
  if (asked.since || lost_ || position_ >= certain_from_) earlier_.clear();
  if (!asked.since && !lost_) {
    earlier_.push_back(filter_);
    certain_from_ = next;
  }
  filter_ = asked.filter;
  followed_.clear();
  lost_ = false;
  follows_from_ = model_.next_seq();  // output is not told before the answer has left
}

void EventClient::take_event(const std::string& line, const json::object& params) {
  const std::uint64_t seq = number(params, "seq");
  const task::Event* const event = model_.event(seq);
  if (event == nullptr) return fail("is told of event " + std::to_string(seq) + ", which never happened");
  trace_.note(name_ + " hears of event " + std::to_string(seq));
  if (line !=
      peer::framed_notification(peer::Protocol::json_lines(), "event." + event->kind, rpc::Json::view(event->params)))
    fail("hears another story: " + line);
  if (!filter_.wants(*event)) fail("gets event " + std::to_string(seq) + ", which it does not want");
  if (seq < position_) fail("gets event " + std::to_string(seq) + " out of order");
  if (!had_.insert(seq).second) fail("gets event " + std::to_string(seq) + " twice");
  expect_nothing_before(seq);
  position_ = seq + 1;
  seen_ = seq;
}

bool EventClient::must_come(std::uint64_t seq) const {
  const task::Event* const event = model_.event(seq);
  const auto wants = [&](const Filter& filter) { return filter.wants(*event); };
  if (event == nullptr || !wants(filter_) || had_.contains(seq)) return false;
  return seq >= certain_from_ || std::ranges::all_of(earlier_, wants);
}

void EventClient::expect_nothing_before(std::uint64_t seq) {
  for (std::uint64_t each = position_; each < seq; ++each) {
    if (must_come(each)) return fail("does not get event " + std::to_string(each));
  }
}

void EventClient::take_overflow(std::uint64_t seq) {
  trace_.note(name_ + " misses events from " + std::to_string(seq) + " on");
  if (std::exchange(lost_, true)) return fail("is told twice that it misses events");
  if (!filter_.subscribed || !(filter_.kinds.empty() || filter_.kinds.contains("taskOutput"))) {
    if (seq >= oldest_())
      fail("is said to miss events, though they are there from " + std::to_string(oldest_()) + " on");
  }
  expect_nothing_before(seq);
}

void EventClient::take_output(const json::object& params) {
  const auto id = task::parse_task_id(std::string_view(params.at("taskId").as_string()));
  const json::string& data = params.at("data").as_string();
  const std::uint64_t offset = number(params, "offset");
  trace_.note(name_ + " gets output of " + std::string(params.at("taskId").as_string()) + " at " +
              std::to_string(offset) + ", " + std::to_string(data.size()) + " bytes");
  if (!id || !filter_.wants_output(*id)) return fail("gets output that it does not want");
  if (offset < output_read_[*id]) fail("gets output of " + task::to_text(*id) + " twice");
  output_read_[*id] = offset + data.size();
  const auto [followed, is_first] = followed_.try_emplace(*id, offset);
  if (!is_first && offset != followed->second && model_.output().is_exact(*id)) {
    fail("does not get output of " + task::to_text(*id) + " from " + std::to_string(followed->second) + " on");
  }
  followed->second = offset + data.size();
  if (data.empty() && !model_.output().is_end(*id, offset)) {
    fail("is told that an attempt of " + task::to_text(*id) + " has written its last, but it has not");
  }
  model_.output_read(*id, {.offset = offset, .bytes = std::string(data), .total = offset + data.size()}, false);
}

// Of tasks that were submitted while it listened, and have ended.
void EventClient::expect_all_output() {
  if (!follows_from_) return;
  std::set<task::TaskId> seen;
  for (std::uint64_t seq = 1; seq < model_.next_seq(); ++seq) {
    const task::Event& event = *model_.event(seq);
    if (event.kind != "taskQueued" || !seen.insert(event.task).second) continue;
    if (seq < *follows_from_ || !filter_.wants_output(event.task)) continue;
    const auto total = model_.output().total(event.task);
    if (total && output_read_[event.task] != *total) fail("does not get all output of " + task::to_text(event.task));
  }
}

void EventClient::check_complete() {
  if (!wire_) return;
  if (!asked_.empty() || slow_things_ > 0) return fail("gets no answer");
  if (lost_) return;
  expect_nothing_before(model_.next_seq());
  expect_all_output();
}

}  // namespace duet::simulate
