#include "app/daemon/event_hub.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "duet/rpc/error.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::value;

constexpr std::size_t no_bound = std::numeric_limits<std::size_t>::max();
constexpr std::string_view output_kind = "taskOutput";

constexpr std::array<std::string_view, 9> kinds = {"taskQueued",     "taskStarted",   "taskCompleted",
                                                   "taskFailed",     "taskCancelled", "automationFired",
                                                   "daemonStopping", "notice",        output_kind};

}  // namespace

bool EventHub::Filter::wants(const task::Event& event) const {
  return (kinds.empty() || kinds.contains(event.kind)) &&
         (tasks.empty() || (event.task != 0 && tasks.contains(task::to_text(event.task))));
}

bool EventHub::Filter::wants_output(std::string_view task_id) const {
  return subscribed && (kinds.empty() || kinds.contains(output_kind)) && (tasks.empty() || tasks.contains(task_id));
}

EventHub::EventHub(transport::Loop& loop, peer::Server& server, task::Journal& journal, Limits limits)
    : loop_(loop), server_(server), journal_(journal), limits_(limits) {}

void EventHub::client_opened(peer::Connection& connection) {
  subscribers_.emplace(connection.peer().connection,
                       Subscriber{.connection = &connection, .from = journal_.next(), .cursor = journal_.next()});
}

void EventHub::client_load_changed(const peer::Connection& connection) {
  const auto found = subscribers_.find(connection.peer().connection);
  if (found != subscribers_.end()) pump(found->second);
}

void EventHub::take_news() {
  for (auto& [number, subscriber] : subscribers_) pump(subscriber);
}

void EventHub::tell_unkept(std::string_view kind, std::string_view params) {
  const std::string message = message_of(kind, rpc::Json::view(params));
  for (auto& [number, subscriber] : subscribers_) {
    if (subscriber.lost || subscriber.connection->is_closed()) continue;
    if (subscriber.filter.wants({.kind = std::string(kind)}))
      subscriber.connection->send(message, limits_.unread_bytes);
  }
}

bool EventHub::wants_output(std::string_view task_id) const {
  return std::ranges::any_of(
      subscribers_, [&](const auto& entry) { return !entry.second.lost && entry.second.filter.wants_output(task_id); });
}

void EventHub::emit_output(std::string_view task_id, std::uint64_t offset, std::string_view text) {
  const std::string message = message_of(output_kind, value{{"taskId", task_id}, {"offset", offset}, {"data", text}});
  for (auto& [number, subscriber] : subscribers_) {
    if (subscriber.lost || subscriber.awaits_answer || subscriber.connection->is_closed()) continue;
    if (!subscriber.filter.wants_output(task_id)) continue;
    if (!subscriber.connection->send(message, limits_.unread_output_bytes)) overflow(subscriber);
  }
}

std::string EventHub::message_of(std::string_view kind, const rpc::Json& params) {
  return server_.framed("event." + std::string(kind), params);
}

// Gives a client what it has not had yet, as much as it reads.
void EventHub::pump(Subscriber& subscriber) {
  peer::Connection& connection = *subscriber.connection;
  if (subscriber.lost || connection.is_closed() ||
      (subscriber.awaits_answer && connection.conversation().owes_answer()))
    return;
  subscriber.awaits_answer = false;
  if (subscriber.cursor < journal_.oldest()) return overflow(subscriber);
  for (; subscriber.cursor < journal_.next(); ++subscriber.cursor) {
    const task::Event& event = journal_.at(subscriber.cursor);
    if (!subscriber.filter.wants(event) || subscriber.given.contains(event.seq)) continue;
    if (!give(connection, event)) return;
  }
}

// Most want the event that another one has just been given.
bool EventHub::give(peer::Connection& connection, const task::Event& event) {
  if (given_last_ != event.seq) message_ = message_of(event.kind, rpc::Json::view(event.params));
  given_last_ = event.seq;
  return connection.send(message_, limits_.unread_bytes);
}

// What cannot be replayed any more need not be remembered.
void EventHub::remember_given(Subscriber& subscriber) const {
  std::set<std::uint64_t>& given = subscriber.given;
  given.erase(given.begin(), given.lower_bound(journal_.oldest()));
  for (std::uint64_t seq = std::max(subscriber.from, journal_.oldest()); seq < subscriber.cursor; ++seq) {
    if (subscriber.filter.wants(journal_.at(seq))) given.insert(given.end(), seq);
  }
}

void EventHub::overflow(Subscriber& subscriber) {
  subscriber.lost = true;
  subscriber.connection->send(message_of("overflow", {{"seq", subscriber.cursor}}), no_bound);
}

void EventHub::add_subscribe_method(peer::Methods& methods, std::function<void()> on_subscribed) {
  const auto handler = [this, on_subscribed = std::move(on_subscribed)](
                           const Subscribe& wanted, const peer::Request& request, peer::Reply<Subscription> reply) {
    const bool answers_at_once = request.conversation.answers_at_once();
    reply.ok(subscribe(wanted, request));
    begin_replay(request.conversation.peer().connection, answers_at_once);
    on_subscribed();
  };
  methods
      .add("events.subscribe",
           "Chooses which events this connection gets, output of tasks included, and replays earlier ones", handler)
      .describe(&Subscribe::since, "The first event to replay")
      .describe(&Subscribe::kinds, "Names of events, such as taskFailed; all if not given")
      .describe(&Subscribe::taskIds, "Only what concerns these tasks");
}

EventHub::Filter EventHub::filter_of(const Subscribe& wanted) {
  Filter filter{.kinds = {}, .tasks = {}, .subscribed = true};
  if (wanted.taskIds) filter.tasks.insert(wanted.taskIds->begin(), wanted.taskIds->end());
  constexpr std::string_view prefix = "event.";
  for (std::string kind : wanted.kinds.value_or(std::vector<std::string>())) {
    if (kind.starts_with(prefix)) kind.erase(0, prefix.size());
    if (std::ranges::find(kinds, kind) == kinds.end()) {
      throw rpc::invalid_params("kinds", "names of events", rpc::first_characters(kind, 64),
                                std::vector<std::string_view>(kinds.begin(), kinds.end()));
    }
    filter.kinds.insert(std::move(kind));
  }
  return filter;
}

Subscription EventHub::subscribe(const Subscribe& wanted, const peer::Request& request) {
  Filter filter = filter_of(wanted);
  const std::optional<std::int64_t> since = wanted.since;
  if (since && *since < 0) throw rpc::invalid_params("since", "integer from 0 up", "number");
  const auto found = subscribers_.find(request.conversation.peer().connection);
  if (found == subscribers_.end()) throw rpc::internal_error();
  Subscriber& subscriber = found->second;

  remember_given(subscriber);
  if (subscriber.lost) subscriber.cursor = journal_.next();
  Subscription answer{.epoch = journal_.epoch(), .next = journal_.next()};
  if (since) {
    const auto first = std::max<std::uint64_t>(static_cast<std::uint64_t>(*since), 1);
    if (first < journal_.oldest() || first > journal_.next()) {
      answer.missed = true;
      answer.oldest = journal_.oldest();
    }
    subscriber.cursor = std::clamp(first, journal_.oldest(), journal_.next());
  }
  subscriber.filter = std::move(filter);
  subscriber.from = subscriber.cursor;
  subscriber.lost = false;
  subscriber.awaits_answer = true;
  return answer;
}

// At once if the answer is out: by the next event the oldest one may be forgotten.
void EventHub::begin_replay(std::uint64_t number, bool is_answered) {
  const auto found = subscribers_.find(number);
  if (found == subscribers_.end()) return;
  if (is_answered) {
    found->second.awaits_answer = false;
    return pump(found->second);
  }
  loop_.defer(lifetime_.bind([this, number] {
    const auto still = subscribers_.find(number);
    if (still != subscribers_.end()) pump(still->second);
  }));
}

}  // namespace duet::app
