#include "task/postgres/postgres_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/json/array.hpp>

#include "duet/rpc/value.h"
#include "task/postgres/records.h"
#include "task/refusal.h"
#include "task/transition.h"

namespace duet::task::postgres {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr base::Duration end_patience = 10s;
constexpr int unknown_task_code = -32000;
constexpr std::size_t most_untold = 10'000;             // in memory; the others wait in the store
constexpr std::string_view told_name = "cluster/told";  // the last event of ours that the database has
constexpr base::Duration overdue = 10s;

std::uint32_t attempts_in(const Event& event) {
  const json::value params = rpc::parse_value(event.params);
  return params.is_object() ? static_cast<std::uint32_t>(number_in(params.get_object(), "attempts")) : 0;
}

}  // namespace

PostgresQueue::PostgresQueue(transport::Loop& loop, base::Log& log, Line& line, Store& store, Journal& journal,
                             TaskSettings settings, ClusterSettings cluster, Options options, Tells tells)
    : loop_(loop),
      log_(log),
      line_(line),
      store_(store),
      journal_(journal),
      settings_(std::move(settings)),
      cluster_(std::move(cluster)),
      options_(std::move(options)),
      tells_(std::move(tells)),
      agents_(settings_, options_.environment, options_.project, options_.provide_for),
      membership_(loop, log, line, cluster_,
                  {.schema = cluster_.schema,
                   .place = options_.place,
                   .version = options_.version,
                   .boottime = options_.boottime,
                   .seed = options_.seed},
                  membership_calls()),
      submits_(loop, line, membership_),
      changes_(loop, membership_),
      attempts_(
          loop, log, line, membership_, agents_,
          {.tasks = options_.tasks, .worker = cluster_.name, .output = cluster_.output, .seed = options_.seed + 1},
          attempts_calls()),
      events_(loop, line, membership_, journal,
              {.began_anew =
                   [this] {
                     began_early_.clear();
                     tells_.journal_began_anew();
                     remote_output_.begin_anew();
                   },
               .became_current = [this] { look_at_waiters(); },
               .before = [this](const std::vector<Event>& events,
                                std::function<void()> then) { finish_remote_output(events, std::move(then)); }}),
      output_waiters_(loop),
      follower_(loop, log, options_.tasks, [this](RunId run) { return output_before(run); },
                {.wants = [this](TaskId id) { return output_waiters_.is_awaited(id) || tells_.output.wants(id); },
                 .tell =
                     [this](TaskId id, std::uint64_t offset, Stream stream, std::string_view text) {
                       tells_.output.tell(id, offset, stream, text);
                       output_waiters_.take(id);
                     }}),
      remote_output_(loop,
                     {.audience = tells_.output,
                      .ask = [this](std::string_view function, std::vector<Argument> arguments,
                                    Line::Done done) { ask_rows(function, std::move(arguments), std::move(done)); },
                      .is_here = [this](RunId run) { return attempts_.is_here(run.task, run.attempt); },
                      .may_tell = [this] { return !events_.is_behind(); }}) {
  store_.publish_to([this](std::vector<Event> events) { forward_events(std::move(events)); });
}

PostgresQueue::~PostgresQueue() { store_.publish_to({}); }

void PostgresQueue::begin(Runner& runner, const std::vector<RunId>& recorded) {
  runner_ = &runner;
  attempts_.begin(runner, recorded);
}

void PostgresQueue::start() {
  std::string told;
  const auto read = store_.read([this, &told](StoreReader& reader) {
    recall_pauses(reader);
    told = reader.recall(told_name).value_or("");
  });
  if (!read) log_.warn("events of this daemon cannot be read", {{"reason", read.error().message()}});
  if (!told.empty()) forward_from_store(std::stoull(told));  // what a daemon before could not tell any more
  line_.start(line_events());
}

void PostgresQueue::when_joined(std::function<void()> call) {
  if (is_joined()) return call();
  when_joined_.push_back(std::move(call));
}

Line::Events PostgresQueue::line_events() {
  return {.greet = [this](Line::Way way, const Line::Ask& ask,
                          const Line::Verdict& verdict) { membership_.greet(way, ask, verdict); },
          .up =
              [this] {
                membership_.line_is_up();
                submits_.line_is_up();
                attempts_.look(false);
                events_.begin();
                forward();
                take_pauses();
              },
          .down =
              [this](const std::string& why) {
                membership_.line_is_down(why);
                events_.line_is_down();
              },
          .notified = [this](const std::string& channel, const std::string& payload) { wake_up(channel, payload); }};
}

void PostgresQueue::wake_up(const std::string& channel, const std::string& payload) {
  if (channel == membership_.events_channel()) return events_.look();
  if (channel != membership_.own_channel()) return;
  if (payload == "task") return attempts_.look(true);
  if (payload == "due") return membership_.sweep_in({});
  membership_.beat_soon();  // a cancel, a drain: a beat brings what there is
}

WorkerOffer PostgresQueue::offer() const {
  WorkerOffer offer{
      .slots = drains_ ? 0 : settings_.max_running, .waiting = attempts_.is_waiting(), .labels = cluster_.labels};
  for (std::string& label : limit_labels()) {
    if (std::ranges::find(offer.labels, label) == offer.labels.end()) offer.labels.push_back(std::move(label));
  }
  offer.accepts = accepted_agents(cluster_, settings_);
  for (const auto& [name, agent] : agents_.all()) offer.agents.push_back(name);
  return offer;
}

Membership::Calls PostgresQueue::membership_calls() {
  return {.offer = [this] { return offer(); },
          .joined =
              [this](const std::vector<OwnAttempt>& own) {
                attempts_.joined(own);
                submits_.line_is_up();
                changes_.joined();
                events_.begin();
                count_soon();
                forward();
                tidy_in(30s);
                take_pauses();
                for (const auto& call : std::exchange(when_joined_, {})) call();
              },
          .given_up = [this] { attempts_.given_up(); },
          .beaten = [this](const Membership::Calls::Beat& beat) { attempts_.beaten(beat); },
          .remembered = [this] { return attempts_.remembered(); },
          .recovered = [this](const Membership::Calls::Recovery& recovery) { attempts_.recovered(recovery); },
          .is_quiet = [this] { return attempts_.is_idle(); },
          .look =
              [this] {
                attempts_.look(false);
                check_stopped();  // nothing is to be told again, perhaps
              },
          .has_room = [this] { return attempts_.has_room(); },
          .removed = [this] { tidy_in(1s); },
          .numbered =
              [this] {
                events_.look();
                count_soon();
              },
          .extend = options_.extend,
          .problem =
              [this](const std::string& problem) {
                if (std::exchange(problem_, problem) != problem) tells_.problem(problem);
              },
          .read_memory = options_.read_memory,
          .write_memory = options_.write_memory};
}

KeeperEvents PostgresQueue::keeper_events() {
  KeeperEvents events = attempts_.keeper_events();
  events.output = [this](RunId run, std::uint64_t /*total*/) { follower_.more(run); };
  return events;
}

Attempts::Calls PostgresQueue::attempts_calls() {
  return {.settings = [this]() -> const TaskSettings& { return settings_; },
          .project = options_.project,
          .began =
              [this](RunId run, bool is_new) {
                follower_.add(*runner_, run, is_new);
                remote_output_.comes_here(run);
                if (!is_new) follower_.began(run);
              },
          .gone =
              [this](RunId run) {
                follower_.gone(run);
                output_waiters_.take(run.task);
                bound_stop();
              },
          .never_began =
              [this](RunId run) {
                follower_.drop(run);
                bound_stop();
              },
          .fenced = [this](RunId run) { follower_.drop(run); },
          .announced = [this](RunId /*run*/) { tell_own_output(); },
          .starts = [this](TaskId id, std::string_view body) { tell_start(id, body); },
          .ended =
              [this](TaskId id) {
                output_waiters_.take(id);
                answer_waiters(id);
              },
          .stopped = [this] { check_stopped(); }};
}

// Rules hear of their tasks at once: files may be changed before the journal tells that a task runs.
void PostgresQueue::tell_start(TaskId id, std::string_view body) {
  const bool is_of_rule = body.find("\"automation\"") != body.npos;
  if (!is_of_rule || !tells_.starts) return;
  Task task;
  task.id = id;
  task.metadata = from_body(body).metadata;
  tells_.starts(task);
}

void PostgresQueue::change_settings(TaskSettings settings) {
  settings_ = std::move(settings);
  agents_.change_settings(settings_);
  attempts_.settings_changed();
  membership_.beat_soon();
  attempts_.look(false);
  take_pauses();
}

void PostgresQueue::change_cluster(ClusterSettings cluster) {
  cluster_ = std::move(cluster);
  attempts_.change_output(cluster_.output);
  membership_.change_settings(cluster_);
}

rpc::Error PostgresQueue::error_of(const Fault& fault) {
  const std::string why = fault.message.empty() ? "the queue's database does not answer" : fault.message;
  return fault.kind == Fault::Kind::refused ? unavailable("store", why) : queue_is_away(why);
}

std::string PostgresQueue::delay() const {
  const base::Duration waited = line_.standing().waited;
  if (waited < overdue) return {};
  return "the queue's database has not answered for " +
         std::to_string(std::chrono::floor<std::chrono::seconds>(waited).count()) +
         " s: its commits may wait for a standby, or for a lock; see cluster status";
}

rpc::Error PostgresQueue::not_joined() const {
  if (is_refused()) return unavailable("store", trouble());
  return queue_is_away(trouble().empty() ? "the queue is not joined yet" : trouble());
}

// `done` may come at once.
void PostgresQueue::ask_rows(std::string_view function, std::vector<Argument> arguments, Line::Done done) {
  if (!membership_.is_joined()) return done(tl::unexpected(Fault{Fault::Kind::never, {}, not_joined().what()}));
  line_.call(Line::Way::work, function, std::move(arguments), std::move(done));
}

void PostgresQueue::ask(std::string_view function, std::vector<Argument> arguments, const Asked& asked) {
  if (!membership_.is_joined()) return asked(tl::unexpected(not_joined()));
  line_.call(Line::Way::work, function, std::move(arguments), lifetime_.bind([asked](const Answer& answer) {
    if (!answer) return asked(tl::unexpected(error_of(answer.error())));
    asked(object_of(*answer));
  }));
}

void PostgresQueue::alter(std::string_view function, std::vector<Argument> arguments, const Altered& altered) {
  if (!membership_.is_joined()) return altered(tl::unexpected(not_joined()), false);
  const auto answered = lifetime_.bind([this, altered](const Answer& answer, bool again) {
    membership_.number_soon();
    if (!answer) return altered(tl::unexpected(error_of(answer.error())), again);
    altered(object_of(*answer), again);
  });
  events_.after_placing(lifetime_.bind([this, function = std::string(function), arguments = std::move(arguments),
                                        answered] { changes_.call(function, arguments, answered); }));
}

void PostgresQueue::once(std::string_view function, std::vector<Argument> arguments, const Asked& asked) {
  if (!membership_.is_joined()) return asked(tl::unexpected(not_joined()));
  const auto answered = lifetime_.bind([this, asked](const Answer& answer) {
    membership_.number_soon();
    if (!answer) return asked(tl::unexpected(error_of(answer.error())));
    asked(object_of(*answer));
  });
  events_.after_placing(
      lifetime_.bind([this, function = std::string(function), arguments = std::move(arguments), answered] {
        membership_.call(Line::Way::work, function, arguments, answered);
      }));
}

// ---- events ----

void PostgresQueue::take(const Event& event) {
  if (tells_start(event)) tell_output_of({event.task, attempts_in(event)});
  if (!tells_end(event)) return;
  remote_output_.ended(event.task);
  answer_waiters(event.task);
  output_waiters_.take(event.task);
}

tl::expected<std::optional<Task>, rpc::Error> PostgresQueue::known(TaskId id) {
  if (const std::optional<Task>* const task = events_.known(id)) return *task;
  return tl::unexpected(unavailable("store", "nothing has happened to " + to_text(id) + " lately"));
}

void PostgresQueue::events_after(std::uint64_t seq, std::size_t limit, const Told& told) {
  if (!membership_.is_joined()) return told(tl::unexpected(not_joined()));
  events_.read(seq, limit, [told](const tl::expected<std::vector<Event>, Fault>& events) {
    if (!events) return told(tl::unexpected(error_of(events.error())));
    told(*events);
  });
}

tl::expected<std::uint64_t, rpc::Error> PostgresQueue::newest_event() {
  return (journal_.is_current() ? journal_.next() : membership_.next_seq()) - 1;
}

// What rules and the daemon tell is on this machine's disk first, and goes to the queue from there.
void PostgresQueue::forward_events(std::vector<Event> events) {
  for (Event& event : events) {
    const bool is_local = event.kind == "daemonStopping";  // others go on
    more_untold_ = more_untold_ || untold_.size() >= most_untold;
    if (!is_local && !more_untold_) untold_.push_back(std::move(event));
  }
  forward();
}

void PostgresQueue::forward_from_store(std::uint64_t told) {
  std::vector<Event> untold;
  const auto read = store_.read([&untold, told](StoreReader& reader) {
    reader.events_after(told, most_untold + 1, [&untold](Event event) { untold.push_back(std::move(event)); });
  });
  if (!read) {
    log_.warn("events of this daemon cannot be read", {{"reason", read.error().message()}});
    more_untold_ = true;  // none is told before these
    forward_timer_ = loop_.after(2s, [this, told] { forward_from_store(told); });
    return;
  }
  more_untold_ = false;
  forward_events(std::move(untold));
}

void PostgresQueue::forward() {
  if (telling_ || untold_.empty() || !membership_.is_joined() || !line_.is_up(Line::Way::work)) return;
  const Event& event = untold_.front();
  json::object params = rpc::parse_value(event.params).as_object();
  params.erase("seq");
  membership_.call(Line::Way::work, "tell_v1", {argument_of(event.seq), event.kind, rpc::to_text(params)},
                   lifetime_.bind(telling_.until([this, seq = event.seq](const Answer& answer) {
                     const std::string state = answer ? "" : answer.error().sqlstate;
                     const bool is_bad = state.starts_with("22") || state.starts_with("23");  // never to be taken
                     if (!answer && !is_bad) {
                       forward_timer_ = loop_.after(2s, [this] { forward(); });
                       return;
                     }
                     untold_.erase(untold_.begin());
                     // The last one stays here: numbers go on from it.
                     store_.write({.apply =
                                       [seq](StoreWriter& writer) {
                                         writer.remember(told_name, std::to_string(seq));
                                         writer.trim_events(seq);
                                       },
                                   .kind = Change::Kind::patient_fact});
                     membership_.number_soon();
                     if (untold_.empty() && more_untold_) return forward_from_store(seq);
                     forward();
                   })));
}

// For the daemon's own status; a moment old.
void PostgresQueue::count_soon() {
  if (count_timer_ || counting_) return;
  count_timer_ = loop_.after(500ms, [this] {
    ask("read_stats_v1", {}, counting_.until([this](const tl::expected<Object, rpc::Error>& counts) {
      if (counts) take_counts(*counts);
    }));
  });
}

void PostgresQueue::take_counts(const Object& counts) {
  counts_ = {number_in(counts, "queued"), number_in(counts, "running"), number_in(counts, "completed"),
             number_in(counts, "failed"), number_in(counts, "cancelled")};
  if (const auto slots = optional_in(counts, "slots")) slots_ = static_cast<std::size_t>(*slots);
}

// ---- waiting for ends ----

std::optional<Queue::Ticket> PostgresQueue::wait(TaskId id, std::optional<base::Duration> limit,
                                                 const FoundTask& waiter) {
  if (left_) {
    waiter(tl::unexpected(is_stopping()));
    return std::nullopt;
  }
  const Ticket ticket{id, ++last_ticket_};
  Waiter& waiting = waiters_[ticket];
  waiting.waiter = waiter;
  const auto answer = [this, ticket](bool whatever) {
    find(ticket.first, [this, ticket, whatever](const tl::expected<Task, rpc::Error>& task) {
      if (!whatever && task && !has_ended(task->progress.state)) return;
      tell_last(task, [this, ticket, task] {
        const auto found = waiters_.extract(ticket);
        if (!found.empty()) found.mapped().waiter(task);
      });
    });
  };
  if (limit) waiting.timer = loop_.after(*limit, [answer] { answer(true); });
  want_events(wanted_here_);
  if (!wait_timer_) wait_timer_ = loop_.after(5s, [this] { look_at_waiters(); });
  answer(limit == base::Duration::zero());
  return ticket;
}

void PostgresQueue::stop_waiting(const Ticket& ticket) {
  waiters_.erase(ticket);
  want_events(wanted_here_);
}

void PostgresQueue::want_events(bool wanted) {
  wanted_here_ = wanted;
  events_.set_wanted(wanted_here_ || !waiters_.empty());
}

// Who waits hears by an event. A look now and then is for what no event told: while nobody read them, or when they were
// gone before they were read.
void PostgresQueue::look_at_waiters() {
  want_events(wanted_here_);
  wait_timer_.cancel();
  if (waiters_.empty()) return;
  wait_timer_ = loop_.after(5s, [this] { look_at_waiters(); });
  std::set<TaskId> ids;
  for (const auto& [ticket, waiter] : waiters_) ids.insert(ticket.first);
  for (const TaskId id : ids) answer_waiters(id);
}

void PostgresQueue::answer_waiters(TaskId id) {
  const auto first = waiters_.lower_bound({id, 0});
  if (first == waiters_.end() || first->first.first != id) return;
  find(id, [this, id](const tl::expected<Task, rpc::Error>& task) {
    const bool is_unknown = !task && task.error().code() == unknown_task_code;
    if (task ? !has_ended(task->progress.state) : !is_unknown) return;  // queued again; or it is looked at later
    tell_last(task, [this, id, task] {
      std::vector<FoundTask> woken;
      for (auto at = waiters_.lower_bound({id, 0}); at != waiters_.end() && at->first.first == id;
           at = waiters_.erase(at)) {
        woken.push_back(std::move(at->second.waiter));
      }
      for (const FoundTask& waiter : woken) waiter(task);
    });
  });
}

// Of a task that was removed its events alone say how it ended: they come first.
void PostgresQueue::tell_last(const tl::expected<Task, rpc::Error>& task, std::function<void()> tell) {
  const bool is_unknown = !task && task.error().code() == unknown_task_code;
  is_unknown ? events_.catch_up(std::move(tell)) : tell();
}

// ---- the end ----

void PostgresQueue::close() {
  stopping_ = true;
  attempts_.close();
}

void PostgresQueue::stop(bool force, std::function<void()> stopped, std::optional<base::Duration> patience) {
  close();
  stopped_ = std::move(stopped);
  drains_ = !force && patience != base::Duration::zero() && attempts_.slots_in_use() > 0;
  if (drains_) membership_.beat_soon();  // others see that it takes nothing more
  if (force || patience == base::Duration::zero()) {
    attempts_.end_running();
    stop_timer_ = loop_.after(end_patience, [this] { end_now(); });
  } else if (patience) {
    stop_timer_ = loop_.after(*patience, [this] {
      attempts_.end_running();
      stop_timer_ = loop_.after(end_patience, [this] { end_now(); });
    });
  }
  bound_stop();
  check_stopped();
}

// When nothing runs any more only ends are to be told, and the database may not be there for that.
void PostgresQueue::bound_stop() {
  if (!stopped_ || stop_timer_ || attempts_.slots_in_use() > 0) return;
  stop_timer_ = loop_.after(end_patience, [this] { end_now(); });
}

// Whoever stops it leaves the queue: nothing is to wait for its lease. A server that has just taken over hears first
// how what ran has ended.
void PostgresQueue::check_stopped() {
  if (!stopped_ || !attempts_.is_empty() || !attempts_.is_idle()) return;
  const bool may_hear = membership_.is_joined() && line_.is_up(Line::Way::watch);
  if (!may_hear || !membership_.is_telling_again()) end_now();
}

void PostgresQueue::end_now() {
  if (!stopped_) return;
  stop_timer_.cancel();
  const auto finish = [this, stopped = std::exchange(stopped_, {})](bool has_left) {
    if (!has_left) {  // what has ended is told to another server first
      stopped_ = stopped;
      return bound_stop();
    }
    left_ = true;
    remote_output_.stop();
    output_waiters_.end();
    for (auto& [ticket, waiter] : std::exchange(waiters_, {})) waiter.waiter(tl::unexpected(is_stopping()));
    store_.when_idle(stopped);
  };
  const auto leave = [this, finish] {
    if (attempts_.is_empty()) return membership_.leave(lifetime_.bind(finish));
    membership_.stop();  // they go on: the next daemon finds them
    finish(true);
  };
  if (!attempts_.is_empty()) return leave();
  settle(3, lifetime_.bind(leave));  // meanwhile the queue may be joined, with attempts that were not known before
}

// What was asked before is answered before: who waits for a task that has just ended hears of it. Output takes a few
// questions behind each other.
void PostgresQueue::settle(int rounds, const std::function<void()>& then) {
  if (rounds == 0 || !line_.is_up(Line::Way::work)) return then();
  line_.call(Line::Way::work, "read_stats_v1", {},
             lifetime_.bind([this, rounds, then](const Answer&) { settle(rounds - 1, then); }));
}

void PostgresQueue::leave(std::function<void()> left) {
  close();
  const auto finish = lifetime_.bind([this, left = std::move(left)] {
    membership_.stop();
    left_ = true;
    remote_output_.stop();
    output_waiters_.end();
    for (auto& [ticket, waiter] : std::exchange(waiters_, {})) waiter.waiter(tl::unexpected(is_stopping()));
    store_.when_idle(left);
  });
  submits_.after(finish);
}

}  // namespace duet::task::postgres
