#include "task/postgres/membership.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include <boost/json/array.hpp>

#include "duet/base/all_calls.h"
#include "duet/rpc/json_scan.h"
#include "duet/rpc/value.h"
#include "task/postgres/records.h"

namespace duet::task::postgres {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr base::Duration between_hints = 20ms;  // wake-ups, and numbers of events
constexpr base::Duration between_sweeps = 10s;
constexpr base::Duration longest_sweep = 30s;  // it is answered before, or nobody takes the answer
constexpr base::Duration between_nudges = 1s;  // a sweep is more than a hint
constexpr base::Duration between_joins = 2s;
constexpr std::int64_t most_numbered = 1000;
constexpr base::Duration longest_after_beat = 2s;  // whoever wants to know what a beat brings waits for it
constexpr std::size_t most_before = 8;             // incarnations that are remembered
constexpr const char* refused_state = "DU003";

std::int64_t milliseconds(base::Duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

OwnAttempt attempt_of(const json::object& told) {
  return {.task = static_cast<TaskId>(number_in(told, "task")),
          .fence = number_in(told, "fence"),
          .attempt = static_cast<std::uint32_t>(number_in(told, "attempt")),
          .started = flag_in(told, "started"),
          .cancelling = flag_in(told, "cancelling"),
          .on_lost = number_in(told, "onLost") == 0 ? OnLost::fail : OnLost::retry,
          .agent = text_in(told, "agent"),
          .retries = static_cast<std::uint32_t>(number_in(told, "retries")),
          .spared = static_cast<std::uint32_t>(number_in(told, "spared"))};
}

Membership::Calls::Recovery recovery_of(const json::object& told) {
  Membership::Calls::Recovery recovery;
  for (const json::value& fence : array_in(told, "fenced")) {
    recovery.fenced.push_back(fence.to_number<std::int64_t>());
  }
  for (const json::value& each : array_in(told, "output")) {
    recovery.output[each.at(0).to_number<std::int64_t>()] = each.at(1).to_number<std::uint64_t>();
  }
  return recovery;
}

}  // namespace

Membership::Membership(transport::Loop& loop, base::Log& log, Line& line, ClusterSettings settings, Options options,
                       Calls calls)
    : loop_(loop),
      log_(log),
      line_(line),
      settings_(std::move(settings)),
      options_(std::move(options)),
      calls_(std::move(calls)),
      memory_(memory_of(calls_.read_memory()).value_or(WorkerMemory())),
      chance_(options_.seed),
      shortest_lease_(settings_.lease),
      kept_lease_(settings_.lease) {
  if (memory_.place != options_.place) {
    copied_ = !memory_.place.empty();
    memory_ = {};
  } else if (memory_.lease_ms > 0) {  // keepers of a daemon before go by it
    kept_lease_ = std::chrono::milliseconds(memory_.lease_ms);
  }
}

// ---- which server this is ----

void Membership::greet(Line::Way way, const Line::Ask& ask, const Line::Verdict& verdict) {
  const std::int64_t seen = memory_.newest_event_ms;  // the other connection may see newer ones before the answer comes
  ask("hello_v1", {}, lifetime_.bind([this, way, ask, verdict, seen](const Answer& answer) {
    if (!answer) return verdict(take_hello_fault(answer.error()));
    const json::object hello = object_of(*answer);
    if (std::optional<std::string> why = check(hello, seen)) return verdict(std::move(why));
    note_timeline(way, number_in(hello, "serverTimeline"));
    const bool is_renewed = number_in(hello, "serverTimeline") > number_in(hello, "timeline");
    if (!is_renewed) return verdict(std::nullopt);
    // Before anything else, by whoever comes first.
    ask("renew_v1", {argument_of(memory_.timeline)}, lifetime_.bind([this, verdict](const Answer& renewed) {
      if (!renewed) return verdict(renewed.error().message);
      epoch_ = text_in(object_of(*renewed), "epoch");
      next_seq_ = static_cast<std::uint64_t>(number_in(object_of(*renewed), "nextSeq"));
      verdict(std::nullopt);
    }));
  }));
}

// No queue, or none for this role, does not pass by itself.
std::string Membership::take_hello_fault(const Fault& fault) {
  const bool is_missing = fault.sqlstate == "3F000" || fault.sqlstate == "42883";
  const bool is_denied = fault.sqlstate == "42501";
  if (!is_missing && !is_denied) return fault.message;
  refusal_ = fault.message + (is_missing ? ": 'duet-rpc cluster init' makes the queue"
                                         : ": the role of `store` must be granted " + options_.schema + "_worker, or " +
                                               options_.schema + "_client if [cluster] run is false");
  return refusal_;
}

// Both ways must lead to the newest primary: an old one that still runs goes on acknowledging.
void Membership::note_timeline(Line::Way way, std::int64_t timeline) {
  timelines_[way] = timeline;
  for (const auto& [other, known] : timelines_) {
    if (known < timeline && line_.is_up(other)) line_.reconnect(other, "another server has a newer timeline");
  }
}

// None: it is the one we know, or as good. What will not pass by itself is a refusal of the start.
std::optional<std::string> Membership::check(const json::object& hello, std::int64_t seen) {
  WorkerMemory known = memory_;
  known.newest_event_ms = std::min(seen, memory_.newest_event_ms);
  const std::vector<Objection> objections = objections_to(hello, known, settings_.project);
  if (!objections.empty()) {
    if (!objections.front().may_pass()) refusal_ = objections.front().why;
    return objections.front().why;
  }
  const std::string queue = text_in(hello, "queue");
  const std::int64_t timeline = number_in(hello, "serverTimeline");
  refusal_.clear();
  if (memory_.queue != queue) {
    // Perhaps since a copy was adopted. Who we were may have joined it meanwhile, without hearing its new name.
    std::vector<std::string> before = std::move(memory_.before);
    for (const std::string& one : {memory_.next, memory_.incarnation}) {
      if (!one.empty()) before.insert(before.begin(), one);
    }
    memory_ = {.queue = queue, .place = options_.place, .before = std::move(before)};
    joined_ = false;
  }
  memory_.system = text_in(hello, "system");
  if (timeline > memory_.timeline) {
    memory_.timeline = timeline;
    memory_.newest_event_ms = number_in(hello, "newestEventMs");  // a failover may have lost what was newer
    remember(memory_);
  }
  queue_ = queue;
  epoch_ = text_in(hello, "epoch");
  next_seq_ = static_cast<std::uint64_t>(number_in(hello, "nextSeq"));
  return std::nullopt;
}

void Membership::line_is_up() {
  if (left_) return;
  if (!joined_ || is_lease_over()) return join();
  if (told_timeline_ != memory_.timeline) return recover();
  calls_.problem({});
  beat_soon();
  sweep_in(jittered(between_joins));  // what has become due meanwhile
  calls_.look();
}

void Membership::line_is_down(const std::string& why) {
  liveness_.begin_anew();
  calls_.problem("the queue's database: " + why);
  call_after_beat();
}

// ---- joining ----

// By the lease that the keepers know of, whatever the settings say now.
bool Membership::is_lease_over() const { return now() - lease_since_ > kept_lease_; }

// Never shorter than the lease that is told, which may still be that of the settings before.
base::Duration Membership::lost_after(base::Duration lease) const {
  return std::max<base::Duration>(settings_.lost_after, lease);
}

// The new incarnation is written down before the database hears of it: whichever of both it has, we can show.
void Membership::join() {
  if (left_) return;
  join_later();  // should this come to nothing
  if (joining_ || !line_.is_up(Line::Way::watch)) return;
  WorkerMemory next = memory_;
  if (next.next.empty()) next.next = random_uuid();
  if (!remember(next)) {
    return calls_.problem("the queue: who this worker is cannot be written down");
  }
  joined_ = false;
  const WorkerOffer offer = calls_.offer();
  std::vector<Argument> old;
  for (const std::string& known : {memory_.incarnation, memory_.next}) {
    if (!known.empty()) old.emplace_back(known);
  }
  old.insert(old.end(), memory_.before.begin(), memory_.before.end());
  const base::Duration told = std::max<base::Duration>(kept_lease_, settings_.lease);
  const base::Duration sent = now();
  line_.call(
      Line::Way::watch, "attach_v1",
      {settings_.name, memory_.worker == 0 ? Argument() : argument_of(memory_.worker), array_of(old), memory_.next,
       options_.place, argument_of(milliseconds(told)), argument_of(milliseconds(lost_after(told))),
       array_of(offer.labels), array_of(offer.accepts), array_of(offer.agents), argument_of(offer.slots),
       argument_of(settings_.run), options_.version, argument_of(protocol)},
      lifetime_.bind(joining_.until([this, sent, told](const Answer& answer) {
        lease_since_ = answer ? sent : lease_since_;
        take_join(answer, told);
      })));
}

void Membership::join_later() {
  join_timer_ = loop_.after(jittered(between_joins), [this] {
    if (!joined_) join();
  });
}

void Membership::take_join(const Answer& answer, base::Duration told_lease) {
  if (left_) return;
  if (!answer) return take_join_refusal(answer.error());
  const json::object told = object_of(*answer);
  WorkerMemory next = memory_;
  next.worker = number_in(told, "worker");
  if (!next.incarnation.empty()) next.before.insert(next.before.begin(), next.incarnation);
  if (next.before.size() > most_before) next.before.resize(most_before);
  next.incarnation = std::exchange(next.next, {});
  remember(next);
  joined_ = true;
  set_beat_timer();
  refusal_.clear();
  calls_.problem({});
  extend(lease_since_, told_lease);
  line_.listen(own_channel());
  std::vector<OwnAttempt> running;
  for (const json::value& each : array_in(told, "running")) running.push_back(attempt_of(each.as_object()));
  log_.info("joined the queue", {{"worker", settings_.name}, {"attempts", running.size()}});
  // A daemon that was restarted in a failover has still to tell what the one before it ran.
  if (told_timeline_ == 0 && !flag_in(told, "recovering")) told_timeline_ = memory_.timeline;
  calls_.joined(running);
  told_timeline_ == memory_.timeline ? begin_work() : recover();
}

void Membership::begin_work() {
  beat();
  sweep_in({});
  calls_.look();
}

void Membership::take_join_refusal(const Fault& fault) {
  std::string why = fault.message;
  if (fault.sqlstate == refused_state && rpc::is_valid_json(fault.message)) {
    const json::value told = rpc::parse_value(fault.message);
    const std::string refused = told.is_object() ? text_in(told.get_object(), "refused") : "";
    if (refused == "name-taken") {
      why = "another worker of the queue has the name '" + settings_.name +
            "': set [cluster] name, or wait until it is lost, or run 'cluster forget " + settings_.name + "'";
      const json::value* const known = told.get_object().if_contains("known");
      if (known != nullptr && *known == false) calls_.given_up();
    } else if (refused == "role") {
      why = "this role may not run tasks: give it " + options_.schema + "_worker, or set [cluster] run = false";
    }
    refusal_ = why;
  } else if (fault.sqlstate == "42501") {  // it may not even ask
    why = "this role may not join the queue: give it " + options_.schema + "_worker, or " + options_.schema +
          "_client with [cluster] run = false (" + fault.message + ")";
    if (!was_member()) refusal_ = why;  // else it may be given back: what runs goes on
  }
  calls_.problem("the queue: " + why);
  join_later();
}

// Somebody took us for gone, or our lease was over.
void Membership::rejoin() {
  if (!joined_) return;
  log_.warn("this worker was given up, and joins the queue anew");
  join();
}

void Membership::recover() {
  if (recovering_here_) return;
  set_beat_timer();
  if (!calls_.is_quiet()) {
    recover_timer_ = loop_.after(50ms, [this] { recover(); });
    return;
  }
  const std::int64_t timeline = memory_.timeline;
  call(Line::Way::watch, "recover_v1", {calls_.remembered()},
       recovering_here_.until([this, timeline](const Answer& answer) {
         if (!answer) {
           recover_timer_ = loop_.after(jittered(1s), [this] {
             if (joined_ && line_.is_up(Line::Way::watch)) recover();
           });
           return;
         }
         const json::object told = object_of(*answer);
         recovering_ = flag_in(told, "recovering");
         calls_.recovered(recovery_of(told));
         told_timeline_ = timeline;
         recovered_timeline_ = timeline;
         calls_.problem({});
         begin_work();
       }));
}

bool Membership::remember(const WorkerMemory& memory) {
  memory_ = memory;
  written_event_ms_ = memory_.newest_event_ms;
  return calls_.write_memory(memory_text(memory_));
}

void Membership::saw_event_at(std::int64_t seen) {
  constexpr std::int64_t step = 5'000;  // the file is not written for each event
  memory_.newest_event_ms = std::max(memory_.newest_event_ms, seen);
  if (memory_.newest_event_ms >= written_event_ms_ + step) remember(memory_);
}

void Membership::call(Line::Way way, std::string_view function, std::vector<Argument> arguments, Line::Done done) {
  if (memory_.incarnation.empty()) {  // nobody knows us there yet
    return loop_.defer(lifetime_.bind([done = std::move(done)] {
      done(tl::unexpected(Fault{Fault::Kind::never, "", "the queue is not joined yet"}));
    }));
  }
  std::vector<Argument> all{argument_of(memory_.worker), memory_.incarnation};
  all.insert(all.end(), std::make_move_iterator(arguments.begin()), std::make_move_iterator(arguments.end()));
  line_.call(way, function, std::move(all),
             lifetime_.bind([this, incarnation = memory_.incarnation, done = std::move(done)](const Answer& answer) {
               const std::string state = answer ? std::string() : answer.error().sqlstate;
               done(answer);
               if (state == fenced_state && incarnation == memory_.incarnation && !left_) rejoin();
               if (state == untold_state && !is_telling_again()) greet_anew();
             }));
}

// Behind a pooler another server may take over and no connection breaks.
void Membership::greet_anew() {
  told_timeline_ = 0;
  for (const Line::Way way : {Line::Way::work, Line::Way::watch}) {
    line_.reconnect(way, "another server has taken over");
  }
}

void Membership::change_settings(ClusterSettings settings) {
  settings_ = std::move(settings);
  beat_soon();
}

// ---- beats ----

void Membership::set_beat_timer() {
  beat_timer_ = loop_.after(shortest_lease_ / 6, [this] { beat(); });
}

void Membership::beat_soon() {
  beat_again_ = static_cast<bool>(beating_);
  if (joined_ && !beating_) beat();
}

void Membership::after_beat(std::function<void()> call) {
  after_beat_.push_back(std::move(call));
  if (!joined_ || left_ || !line_.is_up(Line::Way::watch)) return call_after_beat();
  // A beat may have to wait until we have joined anew, or told a new server what we have.
  if (!after_beat_timer_) after_beat_timer_ = loop_.after(longest_after_beat, [this] { call_after_beat(); });
  beat_soon();
}

void Membership::call_after_beat() {
  after_beat_timer_.cancel();
  base::call_all(std::exchange(after_beat_, {}));
}

void Membership::beat() {
  set_beat_timer();
  if (!joined_ || beating_ || left_ || !line_.is_up(Line::Way::watch)) return;
  if (is_lease_over()) return rejoin();
  if (told_timeline_ != memory_.timeline) return recover();  // before anything else
  const WorkerOffer offer = calls_.offer();
  const base::Duration told = std::max<base::Duration>(kept_lease_, settings_.lease);
  const base::Duration sent = now();
  // Never that we do not wait: who is woken is taken off the list, and a beat of before could undo what wait_v1 says.
  const Argument waits = offer.waiting ? argument_of(true) : Argument();
  call(Line::Way::watch, "beat_v1",
       {waits, argument_of(offer.slots), array_of(offer.labels), array_of(offer.accepts), array_of(offer.agents),
        argument_of(milliseconds(told)), argument_of(milliseconds(lost_after(told)))},
       beating_.until([this, sent, told](const Answer& answer) {
         base::AllCalls calls;
         if (answer && !left_) {
           calls.make([&] {
             last_beat_ = lease_since_ = sent;
             extend(sent, told);
             take_beat(sent, *answer);
           });
         }
         for (const auto& call : std::exchange(after_this_one_, {})) calls.make(call);
         if (std::exchange(beat_again_, false)) calls.make([this] { beat_soon(); });
         calls.check();
       }));
  std::ranges::move(after_beat_, std::back_inserter(after_this_one_));
  after_beat_.clear();
  after_beat_timer_.cancel();
}

// The keepers hear of a shorter lease before the database does, and of a longer one after it: else others could take
// over what they still keep.
void Membership::extend(base::Duration sent, base::Duration told) {
  kept_lease_ = std::min<base::Duration>(told, settings_.lease);
  const std::int64_t was = std::exchange(memory_.lease_ms, milliseconds(kept_lease_));
  if (memory_.lease_ms > was) remember(memory_);  // what is written down is never shorter
  calls_.extend(sent + kept_lease_, kept_lease_);
  if (memory_.lease_ms < was) remember(memory_);
  if (kept_lease_ != told) beat_again_ = true;
}

void Membership::take_beat(base::Duration sent, const Result& answer) {
  has_beaten_ = true;
  const json::object told = object_of(answer);
  shortest_lease_ = std::min<base::Duration>(
      settings_.lease, std::chrono::milliseconds(std::max<std::int64_t>(number_in(told, "shortestLease"), 1000)));
  set_beat_timer();
  agents_.clear();
  for (const std::string& agent : texts_in(told, "agents")) agents_.insert(agent);
  limits_.clear();
  for (const std::string& label : texts_in(told, "limits")) limits_.insert(label);
  const bool could_claim = may_claim();
  draining_ = flag_in(told, "draining");
  recovering_ = flag_in(told, "recovering");
  epoch_ = text_in(told, "epoch");
  saw_event_at(number_in(told, "newestEventMs"));
  judge(sent, told);
  Calls::Beat beat{.sent = sent};
  for (const json::value& each : array_in(told, "mine")) {
    beat.own.push_back(attempt_of(each.as_object()));
    beat.mine.emplace(beat.own.back().task, beat.own.back().fence);
  }
  for (const json::value& each : array_in(told, "cancels")) {
    beat.cancels.emplace_back(number_in(each.as_object(), "task"), number_in(each.as_object(), "fence"));
  }
  if (!is_telling_again()) calls_.beaten(beat);  // else the database does not know yet what we have
  if (recovering_ && recovered_timeline_ != memory_.timeline) recover();
  if (flag_in(told, "unnumbered")) number_soon();
  if (may_claim() && !could_claim) calls_.look();
}

void Membership::judge(base::Duration sent, const json::object& answer) {
  std::vector<Liveness::Seen> others;
  sweeper_.reset();
  for (const json::value& each : array_in(answer, "workers")) {
    const json::object& worker = each.as_object();
    if (number_in(worker, "id") == memory_.worker) continue;
    if (flag_in(worker, "runs") && number_in(worker, "state") < 2) sweeper_ = number_in(worker, "id");
    others.push_back({.worker = number_in(worker, "id"),
                      .beat = number_in(worker, "beat"),
                      .lease = std::chrono::milliseconds(number_in(worker, "lease")),
                      .lost_after = std::chrono::milliseconds(number_in(worker, "lostAfter")),
                      .silent = number_in(worker, "state") == 2,
                      .to_repeat = flag_in(worker, "toRepeat")});
  }
  if (!settings_.run) return;
  // A server that crashes loses beats of the last moments. Behind a pooler no connection tells of it: there a beat more
  // has to be missing.
  const base::Duration margin = line_.standing().listens ? base::Duration::zero() : shortest_lease_ / 6;
  for (const Liveness::Verdict& verdict : liveness_.look(sent - margin, now(), others)) give_up(verdict);
}

void Membership::give_up(const Liveness::Verdict& verdict) {
  call(Line::Way::watch, verdict.lost ? "lose_v1" : "silence_v1",
       {argument_of(verdict.worker), argument_of(verdict.beat)}, [this](const Answer& answer) {
         if (answer) take_ready(object_of(*answer));
       });
}

void Membership::take_ready(const json::object& answer) {
  for (const json::value& each : array_in(answer, "ready")) {
    wake(static_cast<std::int32_t>(number_in(each.as_object(), "lane")), number_in(each.as_object(), "count"));
  }
  number_soon();
}

// ---- the books of all ----

void Membership::sweep_in(base::Duration wait) {
  if (!settings_.run) return ask_for_sweep(wait);
  const base::TimePoint when = loop_.now() + wait;
  if (sweep_at_ && *sweep_at_ <= when) return;
  sweep_at_ = when;
  sweep_timer_ = loop_.after(wait, [this] { sweep(); });
}

void Membership::sweep_when(base::UtcTime due) {
  sweep_in(std::max<base::Duration>(due - loop_.clock().utc(), base::Duration::zero()) + 1ms);
}

// Only workers sweep. One that does so now finds out what becomes due until its next time.
void Membership::ask_for_sweep(base::Duration wait) {
  if (wait > 2 * between_sweeps || sweep_timer_ || left_) return;
  const base::Duration spaced = nudged_at_ ? *nudged_at_ + between_nudges - loop_.now() : between_hints;
  sweep_timer_ = loop_.after(std::max<base::Duration>(between_hints, spaced), [this] {
    nudged_at_ = loop_.now();
    if (!joined_ || !sweeper_ || !line_.is_up(Line::Way::watch)) return;
    call(Line::Way::watch, "nudge_v1", {argument_of(*sweeper_), "due"}, [](const Answer&) {});
  });
}

void Membership::sweep() {
  sweep_at_.reset();
  sweep_again_ = static_cast<bool>(sweeping_);
  if (sweeping_ || left_) return;
  if (!joined_ || !line_.is_up(Line::Way::watch)) return sweep_in(jittered(between_sweeps));
  sweep_timer_ = loop_.after(longest_sweep, [this] { sweep(); });  // should this come to nothing
  call(Line::Way::watch, "sweep_v1", {}, sweeping_.until([this](const Answer& answer) {
    sweep_in(jittered(answer || !sweep_again_ ? between_sweeps : between_joins));
    if (!answer) return;
    const json::object told = object_of(*answer);
    take_ready(told);
    if (number_in(told, "removed") > 0) calls_.removed();
    if (flag_in(told, "more") || sweep_again_) sweep_in({});
    if (const std::int64_t due = number_in(told, "nextDueMs"); due >= 0) {
      sweep_in(std::min<base::Duration>(std::chrono::milliseconds(due + 1), between_sweeps));
    }
  }));
}

void Membership::number_soon() {
  number_again_ = true;
  if (numbering_ || number_timer_ || left_) return;
  const base::Duration wait = std::max<base::Duration>(numbered_at_ + between_hints - loop_.now(), {});
  number_timer_ = loop_.after(wait, [this] { number(); });
}

void Membership::number() {
  number_timer_.cancel();
  if (!line_.is_up(Line::Way::watch)) return;
  number_again_ = false;
  numbered_at_ = loop_.now();
  line_.call(Line::Way::watch, "number_v1", {argument_of(most_numbered)},
             lifetime_.bind(numbering_.until([this](const Answer& answer) {
               const std::int64_t count = answer ? answer->number(0, 0).value_or(0) : 0;
               if (count == most_numbered || number_again_) number_soon();
               if (count > 0) calls_.numbered();
             })));
}

void Membership::wake(std::int32_t lane, std::int64_t count) {
  if (count <= 0) return;
  ready_[lane] += count;
  const bool may_be_ours = !others_lanes_.contains(lane) && calls_.has_room();
  calls_.look();
  if (!wake_timer_) wake_in(may_be_ours ? between_hints : base::Duration::zero());
}

void Membership::wake_in(base::Duration wait) {
  if (left_) return;
  const base::Duration spaced = woke_at_ + between_hints - loop_.now();
  wake_timer_ = loop_.after(std::max({wait, spaced, base::Duration::zero()}), [this] { send_wakes(); });
}

void Membership::took(std::int32_t lane) {
  others_lanes_.erase(lane);
  const auto found = ready_.find(lane);
  if (found != ready_.end() && --found->second <= 0) ready_.erase(found);
}

void Membership::looked() {
  if (!wake_timer_) return;
  wake_timer_.cancel();
  for (const auto& [lane, count] : ready_) others_lanes_.insert(lane);
  if (!ready_.empty()) wake_in({});
}

// A hint: what is lost is found by those who look now and then.
void Membership::send_wakes() {
  woke_at_ = loop_.now();
  std::vector<std::int64_t> lanes;
  std::vector<std::int64_t> counts;
  for (const auto& [lane, count] : std::exchange(ready_, {})) {
    lanes.push_back(lane);
    counts.push_back(count);
  }
  if (lanes.empty() || !joined_) return;
  call(Line::Way::watch, "wake_v1", {array_of(lanes), array_of(counts)}, [](const Answer&) {});
}

void Membership::stop() {
  left_ = true;
  for (transport::Loop::Timer* timer :
       {&beat_timer_, &join_timer_, &recover_timer_, &sweep_timer_, &number_timer_, &wake_timer_}) {
    timer->cancel();
  }
  sweep_at_.reset();
  call_after_beat();
}

// A server that has not been told what we had would give back what has run: it keeps us, and hears it from us or from
// the next daemon here.
void Membership::leave(std::function<void(bool)> left) {
  const bool is_there = joined_ && line_.is_up(Line::Way::watch) && !is_telling_again();
  stop();
  if (!is_there) return left(true);
  joined_ = false;
  call(Line::Way::watch, "leave_v1", {}, [this, left = std::move(left)](const Answer& answer) {
    const bool is_untold = !answer && answer.error().sqlstate == untold_state;
    if (is_untold) come_back();
    // The incarnations stay: a call that was lost on its way may still attach one, and only who can show it is let in
    // then.
    if (answer)
      remember({.queue = memory_.queue,
                .place = memory_.place,
                .incarnation = memory_.incarnation,
                .before = memory_.before,
                .system = memory_.system,
                .timeline = memory_.timeline,
                .newest_event_ms = memory_.newest_event_ms,
                .lease_ms = memory_.lease_ms});
    left(!is_untold);
  });
}

// We have not left after all.
void Membership::come_back() {
  left_ = false;
  joined_ = true;
  set_beat_timer();
}

base::Duration Membership::jittered(base::Duration time) {
  const double factor = std::uniform_real_distribution(0.75, 1.25)(chance_);
  return std::chrono::duration_cast<base::Duration>(time * factor);
}

}  // namespace duet::task::postgres
