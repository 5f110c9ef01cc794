#include "app/daemon/event_hub.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "app/doors/roles.h"
#include "duet/rpc/error.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"
#include "task/refusal.h"

namespace duet::app {
namespace {

using boost::json::value;

constexpr std::size_t no_bound = std::numeric_limits<std::size_t>::max();
constexpr std::string_view output_kind = "taskOutput";

constexpr std::array<std::string_view, 24> kinds = {
    "taskQueued",   "taskStarted",       "taskCompleted",  "taskFailed",      "taskCancelled",
    "taskHeld",     "taskReleased",      "taskEdited",     "tasksRemoved",    "queuePaused",
    "queueResumed", "agentHeld",         "agentReleased",  "automationFired", "daemonStopping",
    "notice",       "settingsChanged",   "approvalNeeded", "approvalDenied",  "chainStopped",
    "runFailed",    "automationChanged", "workerChanged",  output_kind};

}  // namespace

bool EventHub::Filter::wants(const task::Event& event) const {
  return (kinds.empty() || kinds.contains(event.kind)) &&
         (tasks.empty() || (event.task != 0 && tasks.contains(task::to_text(event.task))));
}

bool EventHub::Filter::wants_output(std::string_view task_id) const {
  if (outputs.contains(task_id)) return true;
  return subscribed && (kinds.empty() || kinds.contains(output_kind)) && (tasks.empty() || tasks.contains(task_id));
}

EventHub::EventHub(transport::Loop& loop, task::Journal& journal, Limits limits)
    : loop_(loop), journal_(journal), limits_(limits) {}

void EventHub::add(std::uint64_t number, Subscriber subscriber) {
  const bool is_first = subscribers_.empty();
  subscribers_.emplace(number, std::move(subscriber));
  if (is_first && on_clients_) on_clients_(true);
}

void EventHub::client_forgotten(std::uint64_t number) {
  if (subscribers_.erase(number) > 0 && subscribers_.empty() && on_clients_) on_clients_(false);
}

void EventHub::client_opened(peer::Connection& connection) {
  const std::uint64_t number = connection.peer().connection;
  add(number, {.connection = &connection, .is_new = true});
  journal_.prepare({}, lifetime_.bind([this, number] {
    const auto found = subscribers_.find(number);
    if (found == subscribers_.end() || !found->second.is_new) return;
    const std::uint64_t first = std::max(stopping_.value_or(journal_.next()), journal_.oldest());
    found->second.from = first;
    found->second.cursor = first;
    found->second.is_new = false;
  }));
}

void EventHub::journal_began_anew() {
  for (auto& [number, subscriber] : subscribers_) {
    subscriber.given.clear();
    if (subscriber.is_open()) overflow(subscriber);
  }
}

void EventHub::client_load_changed(const peer::Connection& connection) {
  const auto found = subscribers_.find(connection.peer().connection);
  if (found != subscribers_.end()) pump(found->second);
}

void EventHub::take_news() {
  const bool is_end = journal_.next() > journal_.oldest() && journal_.at(journal_.next() - 1).kind == "daemonStopping";
  if (is_end) stopping_ = journal_.next() - 1;
  for (auto& [number, subscriber] : subscribers_) pump(subscriber);
}

void EventHub::tell_unkept(std::string_view kind, std::string_view params) {
  peer::Announcement message = message_of(kind, rpc::Json::view(params));
  for (auto& [number, subscriber] : subscribers_) {
    if (subscriber.is_there() && subscriber.filter.wants({.kind = std::string(kind)}))
      send(subscriber, {.kind = kind, .params = params}, message, limits_.unread_bytes);
  }
}

bool EventHub::wants_output(std::string_view task_id) const {
  return std::ranges::any_of(
      subscribers_, [&](const auto& entry) { return !entry.second.lost && entry.second.filter.wants_output(task_id); });
}

void EventHub::emit_output(std::string_view task_id, std::uint64_t offset, std::string_view text,
                           std::string_view stream) {
  boost::json::object params{{"taskId", task_id}, {"offset", offset}, {"data", text}};
  if (!stream.empty()) params["stream"] = stream;
  const std::string told = rpc::to_text(params);
  peer::Announcement message = message_of(output_kind, rpc::Json::view(told));
  for (auto& [number, subscriber] : subscribers_) {
    if (!subscriber.is_open() || subscriber.is_early() || !subscriber.filter.wants_output(task_id)) continue;
    if (!send(subscriber, {.kind = output_kind, .params = told}, message, limits_.unread_output_bytes))
      overflow(subscriber);
  }
}

peer::Announcement EventHub::message_of(std::string_view kind, const rpc::Json& params) {
  return {"event." + std::string(kind), params};
}

// Gives a client what it has not had yet, as much as it reads.
void EventHub::pump(Subscriber& subscriber) {
  if (!subscriber.is_open() || subscriber.is_early()) return;
  if (subscriber.cursor < journal_.oldest()) return overflow(subscriber);
  for (; subscriber.cursor < journal_.next(); ++subscriber.cursor) {
    const task::Event& event = journal_.at(subscriber.cursor);
    if (!subscriber.filter.wants(event) || subscriber.given.contains(event.seq)) continue;
    if (!give(subscriber, event)) return;
  }
}

// Most want the event that another one has just been given.
bool EventHub::give(Subscriber& subscriber, const task::Event& event) {
  if (given_last_ != event.seq) message_ = message_of(event.kind, rpc::Json::view(event.params));
  given_last_ = event.seq;
  const StreamedEvent told{.epoch = journal_.epoch(), .seq = event.seq, .kind = event.kind, .params = event.params};
  return send(subscriber, told, *message_, limits_.unread_bytes);
}

// False: it has too much to read.
bool EventHub::send(Subscriber& subscriber, const StreamedEvent& event, peer::Announcement& message, std::size_t most) {
  return subscriber.stream != nullptr ? subscriber.stream->give(event, most)
                                      : subscriber.connection->send(message, most);
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
  const std::string params = rpc::to_text(boost::json::object{{"seq", subscriber.cursor}});
  peer::Announcement told = message_of("overflow", rpc::Json::view(params));
  if (subscriber.stream != nullptr) return subscriber.stream->give_last({.kind = "overflow", .params = params});
  subscriber.connection->send(told, no_bound);
}

bool EventHub::open_stream(std::uint64_t number, EventStream& stream, const StreamWish& wish) {
  for (const std::string& kind : wish.kinds) {
    if (std::ranges::find(kinds, kind) == kinds.end()) return false;
  }
  Subscriber subscriber{.stream = &stream, .is_new = true};
  subscriber.filter = {.kinds = wish.kinds,
                       .tasks = wish.tasks,
                       .outputs = wish.outputs,
                       .subscribed = wish.kinds.contains(output_kind)};
  add(number, std::move(subscriber));
  journal_.prepare(wish.since, lifetime_.bind([this, number, wish] {
    const auto found = subscribers_.find(number);
    if (found != subscribers_.end()) begin_stream(found->second, wish);
  }));
  return true;
}

// What it asks for may be gone, or be of another store; then it is told what there is.
void EventHub::begin_stream(Subscriber& subscriber, const StreamWish& wish) {
  const bool is_other_epoch = !wish.epoch.empty() && wish.epoch != journal_.epoch();
  const std::uint64_t first = std::max<std::uint64_t>(wish.since.value_or(journal_.next()), 1);
  if (is_other_epoch || first < journal_.oldest() || first > journal_.next()) {
    const std::string params = rpc::to_text(
        boost::json::object{{"epoch", journal_.epoch()}, {"oldest", journal_.oldest()}, {"next", journal_.next()}});
    subscriber.stream->give({.kind = "missed", .params = params}, no_bound);
  }
  subscriber.cursor = is_other_epoch ? journal_.oldest() : std::clamp(first, journal_.oldest(), journal_.next());
  subscriber.from = subscriber.cursor;
  subscriber.is_new = false;
  pump(subscriber);
  if (on_subscribed_) on_subscribed_();
}

void EventHub::go_on(std::uint64_t number) {
  const auto found = subscribers_.find(number);
  if (found != subscribers_.end()) pump(found->second);
}

void EventHub::add_subscribe_method(peer::Methods& methods, std::function<void()> on_subscribed) {
  on_subscribed_ = std::move(on_subscribed);
  const auto handler = [this](Subscribe wanted, const peer::Request& request, peer::Reply<Subscription> reply) {
    check(wanted, request);
    const auto kept = shared(std::move(reply));
    const auto first = wanted.since ? std::optional(static_cast<std::uint64_t>(*wanted.since)) : std::nullopt;
    journal_.prepare(first, lifetime_.bind([this, kept, wanted, number = request.conversation.peer().connection,
                                            id = std::string(request.id)] {
      const auto found = subscribers_.find(number);
      if (found == subscribers_.end()) return;  // it has gone meanwhile
      // A shared queue that was never joined has no events to go on from.
      if (journal_.epoch().empty()) return kept->fail(task::queue_is_away("the queue is not joined yet"));
      kept->ok(subscribe(wanted, found->second));
      begin_replay(number, id);
      on_subscribed_();
    }));
  };
  methods
      .add("events.subscribe",
           "Chooses which events this connection gets, output of tasks included, and replays earlier ones", handler)
      .needs(role::observe)
      .describe(&Subscribe::since, "The first event to replay")
      .describe(&Subscribe::kinds, "Names of events, such as taskFailed; all if not given")
      .describe(&Subscribe::taskIds, "Only what concerns these tasks")
      .describe(&Subscribe::outputOf, "Output of these tasks comes along, whatever the kinds and taskIds");
}

EventHub::Filter EventHub::filter_of(const Subscribe& wanted) {
  Filter filter{.kinds = {}, .tasks = {}, .outputs = {}, .subscribed = true};
  if (wanted.taskIds) filter.tasks.insert(wanted.taskIds->begin(), wanted.taskIds->end());
  if (wanted.outputOf) filter.outputs.insert(wanted.outputOf->begin(), wanted.outputOf->end());
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

void EventHub::check(const Subscribe& wanted, const peer::Request& request) const {
  filter_of(wanted);
  if (wanted.since && *wanted.since < 0) throw rpc::invalid_params("since", "integer from 0 up", "number");
  // Who asks by HTTP hears nothing.
  if (!subscribers_.contains(request.conversation.peer().connection)) throw rpc::method_not_found();
}

Subscription EventHub::subscribe(const Subscribe& wanted, Subscriber& subscriber) const {
  remember_given(subscriber);
  if (subscriber.lost || subscriber.is_new) subscriber.cursor = journal_.next();
  Subscription answer{.epoch = journal_.epoch(), .next = journal_.next()};
  if (wanted.since) {
    const auto first = std::max<std::uint64_t>(static_cast<std::uint64_t>(*wanted.since), 1);
    if (first < journal_.oldest() || first > journal_.next()) {
      answer.missed = true;
      answer.oldest = journal_.oldest();
    }
    subscriber.cursor = std::clamp(first, journal_.oldest(), journal_.next());
  }
  subscriber.filter = filter_of(wanted);
  subscriber.from = subscriber.cursor;
  subscriber.lost = false;
  subscriber.is_new = false;
  subscriber.answers_before = std::numeric_limits<std::uint64_t>::max();  // until the answer has its turn
  return answer;
}

// At once if the answer is out: by the next event the oldest one may be forgotten.
void EventHub::begin_replay(std::uint64_t number, const std::string& id) {
  const auto found = subscribers_.find(number);
  if (found == subscribers_.end()) return;
  peer::Conversation& conversation = found->second.connection->conversation();
  const rpc::Json no_params;
  found->second.answers_before = conversation.answers_promised({"events.subscribe", id, no_params, conversation});
  if (!found->second.is_early()) return pump(found->second);
  loop_.defer(lifetime_.bind([this, number] {
    const auto still = subscribers_.find(number);
    if (still != subscribers_.end()) pump(still->second);
  }));
}

}  // namespace duet::app
