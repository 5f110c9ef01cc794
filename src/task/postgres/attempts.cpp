#include "task/postgres/attempts.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "duet/rpc/object_text.h"
#include "duet/rpc/value.h"
#include "process/launch.h"
#include "task/failure_text.h"
#include "task/output.h"
#include "task/postgres/records.h"
#include "task/postgres/report.h"
#include "task/postgres/shared_place.h"
#include "task/retry.h"

namespace duet::task::postgres {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr base::Duration poll_with_wakes = 5s;
constexpr base::Duration poll_without = 1s;
constexpr base::Duration between_outputs = 500ms;
constexpr base::Duration together = 10ms;  // starts wait so long for what comes with them
constexpr base::Duration limits_pause = 10s;
constexpr std::uint64_t output_at_once = std::uint64_t{512} << 10U;
constexpr base::Duration kept_reports = 60s;  // before the last beat that was answered
constexpr std::size_t most_reported = std::size_t{8} << 20U;
constexpr std::size_t most_told = 10'000;
constexpr std::uint32_t most_lost = 3;
constexpr std::uint64_t most_in_report = std::uint64_t{4} << 20U;

bool is_lost(const Outcome& outcome) { return outcome.kind == Outcome::Kind::lost || outcome.ended_with_lease(); }

}  // namespace

Attempts::Attempts(transport::Loop& loop, base::Log& log, Line& line, Membership& membership, const Agents& agents,
                   Options options, Calls calls)
    : loop_(loop),
      log_(log),
      line_(line),
      membership_(membership),
      agents_(agents),
      options_(std::move(options)),
      calls_(std::move(calls)),
      shortages_(loop.clock()),
      chance_(options_.seed) {
  settings_changed();
}

KeeperEvents Attempts::keeper_events() {
  return {.started = [this](RunId run, const Started& started) { on_started(run, started); },
          .output = [](RunId, std::uint64_t) {},
          .terminated = [](RunId) {},
          .ended = [this](RunId run, const Outcome& outcome) { on_ended(run, outcome); },
          .gone = [this](RunId run) { on_gone(run); },
          .never_began = [this](RunId run, const std::string& why) { on_never_began(run, why); }};
}

void Attempts::begin(Runner& runner, const std::vector<RunId>& recorded) {
  runner_ = &runner;
  recorded_.insert(recorded.begin(), recorded.end());
}

void Attempts::settings_changed() {
  usage_limits_.clear();
  for (const auto& [name, agent] : agents_.all()) {
    if (agent.hold) usage_limits_.emplace(name, UsageLimit(*agent.hold));
  }
}

// ---- what the database says of us ----

// What it believes us to have counts: what else we have is not ours any more.
void Attempts::joined(const std::vector<OwnAttempt>& own) {
  std::set<std::pair<TaskId, std::int64_t>> ours;
  for (const OwnAttempt& each : own) {
    ours.emplace(each.task, each.fence);
    const bool will_be_told = membership_.is_telling_again() && was_reported(each.fence);
    if (find(each.task, each.fence) == attempts_.end() && !will_be_told) take_unknown(each);
  }
  if (std::exchange(is_first_join_, false) && membership_.is_telling_again()) take_forgotten();
  waiting_ = false;
  set_poll_timer();
  set_output_timer();
  if (membership_.is_telling_again()) return;  // it does not know yet what we have
  std::vector<RunId> others;
  for (const auto& [run, attempt] : attempts_) {
    if (!attempt.concluded && !ours.contains({run.task, attempt.fence})) others.push_back(run);
  }
  for (const RunId run : others) take_fenced(run);
}

bool Attempts::was_reported(std::int64_t fence) const {
  return std::ranges::any_of(reported_, [fence](const Reported& each) { return each.attempt.fence == fence; });
}

// One that was left by a daemon before, or a claim whose answer was lost, or an end that the database has forgotten.
void Attempts::take_unknown(const OwnAttempt& own) {
  const RunId run{own.task, own.attempt};
  const auto [place, is_new] =
      attempts_.emplace(run, Attempt{.fence = own.fence, .output = OutputSender(options_.tasks, run, options_.output)});
  if (!is_new) return;
  Attempt& attempt = place->second;
  attempt.agent = own.agent;
  attempt.retries = own.retries;
  attempt.spared = own.spared;
  attempt.adopted = true;
  attempt.cancelling = own.cancelling;
  attempt.start_told = own.started;
  attempt.on_lost = own.on_lost;
  attempt.claimed = membership_.now();
  if (is_first_join_ && (recorded_.contains(run) || own.started)) return runner_->adopt(run);
  if (!own.started && !told_.contains(own.fence)) return put_back(run, attempt, {});  // it never began
  attempt.outcome = Outcome{.kind = Outcome::Kind::lost, .ended_at = loop_.clock().utc()};
  attempt.made_here = true;
  attempt.gone = true;
  soon();
}

// What a daemon before ran here and a server that took over may not know of: it is told, and the server decides.
void Attempts::take_forgotten() {
  for (const RunId run : recorded_) {
    const std::optional<Claim> claim = attempts_.contains(run) ? std::nullopt : runner_->claim_of(run);
    if (!claim) continue;
    Attempt attempt{.fence = static_cast<std::int64_t>(claim->fence),
                    .output = OutputSender(options_.tasks, run, options_.output)};
    attempt.on_lost = claim->leased ? OnLost::retry : OnLost::fail;
    attempt.adopted = true;
    attempt.claimed = membership_.now();
    attempts_.emplace(run, std::move(attempt));
    runner_->adopt(run);
  }
}

void Attempts::beaten(const Membership::Calls::Beat& beat) {
  for (const auto& [task, fence] : beat.cancels) {
    const auto found = find(task, fence);
    if (found != attempts_.end()) cancel(found->first, found->second);
  }
  std::vector<RunId> lost;
  for (const auto& [run, attempt] : attempts_) {
    const bool is_ours = beat.mine.contains({run.task, attempt.fence});
    // Only we could have ended it, and have not.
    const bool could_be_told = attempt.concluded || attempt.outcome || attempt.never_began;
    if (!is_ours && !could_be_told && attempt.claimed < beat.sent) lost.push_back(run);
  }
  for (const RunId run : lost) take_fenced(run);
  // Of what we do not know it is certain that it never began only if no report was on its way together with the beat
  // that may have brought it, or told its end.
  if (changing_ || beat.sent < changed_) return;
  for (const OwnAttempt& own : beat.own) {
    if (find(own.task, own.fence) == attempts_.end()) take_unknown(own);
  }
  if (std::exchange(lost_claim_, false)) look(false);
}

// Output that the old server had taken and the new one lacks goes again.
void Attempts::recovered(const Membership::Calls::Recovery& recovery) {
  std::vector<RunId> lost;
  for (auto& [run, attempt] : attempts_) {
    const bool is_lost = std::ranges::find(recovery.fenced, attempt.fence) != recovery.fenced.end();
    if (is_lost) lost.push_back(run);
    const auto has = recovery.output.find(attempt.fence);
    if (!is_lost && has != recovery.output.end()) attempt.output.go_back_to(has->second);
  }
  for (const RunId run : lost) take_fenced(run);
  tell_ends_again(recovery);
}

// What the server takes for running has ended; what it has not taken back it knows.
void Attempts::tell_ends_again(const Membership::Calls::Recovery& recovery) {
  for (Reported& reported : std::exchange(reported_, {})) {
    const auto has = recovery.output.find(reported.attempt.fence);
    const bool is_known = std::ranges::find(recovery.fenced, reported.attempt.fence) != recovery.fenced.end();
    if (is_known || has == recovery.output.end()) continue;
    const auto [place, is_new] = attempts_.emplace(reported.run, std::move(reported.attempt));
    Attempt& attempt = place->second;
    if (!is_new && !attempt.concluded) continue;  // another claim of the same attempt
    attempt.gone = attempt.gone || is_new;
    attempt.concluded = false;
    attempt.told_again = true;
    attempt.output.go_back_to(has->second);
    soon();
  }
  reported_bytes_ = 0;
}

Attempts::All::iterator Attempts::find(TaskId task, std::int64_t fence) {
  for (auto at = attempts_.lower_bound({task, 0}); at != attempts_.end() && at->first.task == task; ++at) {
    if (at->second.fence == fence) return at;
  }
  return attempts_.end();
}

std::pair<std::string, std::string> Attempts::remembered() const {
  std::string running;
  const auto add = [&running, this](RunId run, const Attempt& attempt) {
    running += (running.empty() ? "[" : ",") + recovery_text(run, attempt, running.size());
  };
  for (const auto& [run, attempt] : attempts_) {
    if (!attempt.concluded && !attempt.never_began && !attempt.fenced) add(run, attempt);
  }
  // What has ended, too: its end follows in a report, with the output that the server lacks.
  for (const Reported& reported : reported_) add(reported.run, reported.attempt);
  return {running.empty() ? "[]" : running + "]", "[]"};
}

std::string Attempts::recovery_text(RunId run, const Attempt& attempt, std::size_t before) const {
  rpc::ObjectText told;
  told.add("task", run.task).add("fence", attempt.fence).add("attempt", run.attempt).add("spared", attempt.spared);
  if (attempt.started && attempt.start_told) {
    told.add("pid", attempt.started->pid).add("ago", ago_of(loop_.clock(), attempt.started->at));
  }
  // What it was claimed with is for a row that is lost; without a bound nothing at all could be told.
  const bool has_room = before + attempt.claim.size() + attempt.env.size() < most_reported;
  if (!attempt.env.empty() && has_room) told.add("env", attempt.env);
  std::string text = told.take();
  if (!attempt.claim.empty() && has_room) text.insert(text.size() - 1, "," + attempt.claim);
  return text;
}

// ---- asking and telling ----

void Attempts::set_poll_timer() {
  const base::Duration every = line_.standing().listens ? poll_with_wakes : poll_without;
  const double factor = std::uniform_real_distribution(0.75, 1.25)(chance_);
  poll_timer_ = loop_.after(std::chrono::duration_cast<base::Duration>(every * factor), [this] {
    look(false);
    set_poll_timer();
  });
}

void Attempts::set_output_timer() {
  output_timer_ = loop_.after(between_outputs, [this] {
    if (!attempts_.empty()) flush();
    set_output_timer();
  });
}

// Whoever is woken is no longer written down. It writes itself down again before it looks: so it looks once, also if it
// finds less than it has room for.
void Attempts::look(bool wake_up) {
  wants_claim_ = true;
  if (!wake_up) return flush();
  waiting_ = false;
  woken_ = telling_wait_;
  if (telling_wait_) return;
  free_slots() > 0 ? tell_wait() : flush();
}

void Attempts::tell_wait() {
  telling_wait_ = true;
  membership_.call(Line::Way::work, "wait_v1", {argument_of(true)}, lifetime_.bind([this](const Answer& answer) {
    telling_wait_ = false;
    const bool was_woken = std::exchange(woken_, false);  // the database waits for us no more
    waiting_ = answer && !was_woken;
    if (answer || wants_claim_) look(false);
    say_if_stopped();
  }));
}

void Attempts::soon() {
  if (!soon_timer_) soon_timer_ = loop_.after(together, [this] { flush(); });
}

std::size_t Attempts::slots_in_use() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(attempts_, [](const auto& attempt) { return !attempt.second.gone; }));
}

std::size_t Attempts::free_slots() const {
  if (closed_ || runner_ == nullptr || !membership_.may_claim()) return 0;
  if (lost_claim_) return 0;
  const std::size_t most = calls_.settings().max_running;
  const std::size_t used = slots_in_use();
  return used < most ? most - used : 0;
}

void Attempts::flush() {
  soon_timer_.cancel();
  if (in_flight_ || !membership_.is_joined() || membership_.is_telling_again() || !line_.is_up(Line::Way::work)) return;
  Report report;
  add_ends(report);
  add_starts(report);
  add_output(report);
  const bool frees_slots = !report.ends.empty();
  if (wants_claim_ || frees_slots) report.most = free_slots();
  wants_claim_ = false;
  if (report.is_empty()) return;
  send(std::move(report));
}

// An end that goes now tells of its start, too.
void Attempts::add_starts(Report& report) {
  for (auto& [run, attempt] : attempts_) {
    if (attempt.start_told || !attempt.started || attempt.concluded || attempt.fenced || attempt.end_told) continue;
    report.starts.push_back({run, attempt.fence, *attempt.started, ago_of(loop_.clock(), attempt.started->at)});
    attempt.start_told = true;
  }
}

// A task that is cancelled, or may be tried again, is over when its tree is gone: two attempts never run at once. Any
// other is when its main process has ended.
bool Attempts::is_end_ready(const All::value_type& each) const {
  const auto& [run, attempt] = each;
  if (attempt.concluded || attempt.end_told) return false;
  if (attempt.never_began) return true;
  return attempt.outcome && (attempt.gone || !(attempt.cancelling || may_run_again(run, attempt)));
}

bool Attempts::may_run_again(RunId run, const Attempt& attempt) const {
  const Outcome& outcome = *attempt.outcome;
  if (attempt.ended_by_stop || attempt.fenced) return false;
  if (is_lost(outcome) && attempt.on_lost == OnLost::retry) return true;
  if (outcome.kind == Outcome::Kind::exited && outcome.code == 0 && !outcome.timed_out) return false;
  return run.attempt - std::min(run.attempt, attempt.spared) <= attempt.retries ||
         usage_limits_.contains(attempt.agent);
}

void Attempts::add_ends(Report& report) {
  std::uint64_t bytes = 0;
  for (auto& each : attempts_) {
    if (!is_end_ready(each) || bytes > most_in_report) continue;
    auto& [run, attempt] = each;
    const bool has_output = !attempt.never_began && !attempt.made_here && !attempt.fenced;
    const std::uint64_t rest = has_output ? output_left(run, attempt) : 0;
    const bool can_go_before = attempt.start_told || attempt.started;
    if (rest > most_in_report && can_go_before) continue;
    bytes += rest + (attempt.outcome ? attempt.outcome->result.size() : 0);
    report.ends.push_back({.run = run, .fence = attempt.fence});
    End& end = report.ends.back();
    if (attempt.never_began) {
      end.flags |= End::put_back;
      end.retry = attempt.pause;
    } else {
      tell_outcome(end, *attempt.outcome, loop_.clock());
      const std::uint32_t failures = std::max(run.attempt - std::min(run.attempt, attempt.spared), 1U);
      end.retry = retry_delay(failures, std::uniform_real_distribution(0.0, 1.0)(chance_));
      if (attempt.ended_by_stop) end.flags |= End::by_stop;
      if (is_lost(*attempt.outcome) && attempt.on_lost == OnLost::retry && attempt.spared < most_lost)
        end.flags |= End::lease_was_over;
      const auto held = attempt.ended_by_stop ? std::nullopt : usage_limit_of(run, attempt);
      if (held) {
        end.hold = std::max<base::Duration>(*held - loop_.clock().utc(), base::Duration::zero());
        end.hold_text = to_text(run.task) + " has met a usage limit: " + failure_of(*attempt.outcome).message;
      }
    }
    if (attempt.gone) end.flags |= End::tree_is_gone;
    attempt.end_told = true;
  }
}

std::uint64_t Attempts::output_left(RunId run, const Attempt& attempt) const {
  try {
    return attempt.output.left();
  } catch (const std::system_error& error) {
    log_.warn("output of a task cannot be read", {{"task", to_text(run.task)}, {"reason", error.code().message()}});
    return 0;
  }
}

// With the end comes the rest of the output, in the same transaction; what is too much for that goes before, whatever
// the rate.
void Attempts::add_output(Report& report) {
  const std::int64_t budget = budget_.left(loop_.now());
  std::uint64_t left = budget > 0 ? std::min(static_cast<std::uint64_t>(budget), output_at_once) : 0;
  if (std::ranges::any_of(attempts_, [this](const auto& each) { return is_end_ready(each); })) {
    left = std::max(left, output_at_once);
  }
  std::vector<All::iterator> others;
  for (auto at = attempts_.begin(); at != attempts_.end(); ++at) {
    // Those whose end waits come first: one that writes without end would keep them back for ever.
    if (!is_end_ready(*at) && !at->second.end_told) {
      others.push_back(at);
    } else {
      left -= std::min(left, add_output_of(report, at->first, at->second, left));
    }
  }
  for (const All::iterator at : others) left -= std::min(left, add_output_of(report, at->first, at->second, left));
}

// How much it is.
std::uint64_t Attempts::add_output_of(Report& report, RunId run, Attempt& attempt, std::uint64_t left) {
  if (attempt.concluded || attempt.never_began || attempt.fenced) return 0;
  const bool is_last =
      attempt.end_told && std::ranges::any_of(report.ends, [run](const End& end) { return end.run == run; });
  if (!is_last && (!attempt.start_told || left == 0)) return 0;
  std::uint64_t bytes = 0;
  try {
    OutputSender::Portion portion = attempt.output.next(left, is_last);
    if (portion.is_empty()) return 0;
    for (const OutputSender::Piece& piece : portion.pieces) bytes += piece.bytes.size();
    budget_.spend(bytes);
    report.outputs.push_back({run, attempt.fence, std::move(portion)});
  } catch (const std::system_error& error) {
    log_.warn("output of a task cannot be read", {{"task", to_text(run.task)}, {"reason", error.code().message()}});
  }
  return bytes;
}

void Attempts::send(Report report) {
  in_flight_ = true;
  changing_ = report.most > 0 || !report.ends.empty();
  const auto shared = std::make_shared<Report>(std::move(report));
  std::vector<Argument> arguments = arguments_of(*shared);
  arguments.insert(arguments.end(),
                   {argument_of(shared->most), array_of(turns_), array_of(closed_groups()), limits(), Argument()});
  membership_.call(Line::Way::work, "report_v1", std::move(arguments),
                   lifetime_.bind([this, shared](const Answer& answer) {
                     in_flight_ = false;
                     if (std::exchange(changing_, false)) changed_ = membership_.now();
                     take(*shared, answer);
                     if (answer) go_on();
                     say_if_stopped();
                   }));
}

// What has happened meanwhile is told at once, but for output, which has its own time.
void Attempts::go_on() {
  if (lost_claim_) membership_.beat_soon();  // the one that was under way may have been of no use
  if (in_flight_ || soon_timer_) return;
  const auto is_start = [](const auto& each) {
    const Attempt& attempt = each.second;
    return attempt.started && !attempt.start_told && !attempt.concluded && !attempt.fenced;
  };
  const bool has_end = std::ranges::any_of(attempts_, [this](const auto& each) { return is_end_ready(each); });
  if (has_end || (wants_claim_ && free_slots() > 0)) return flush();
  if (std::ranges::any_of(attempts_, is_start)) soon();
}

// Until all of it is taken nothing new is asked for: what was claimed counts first.
void Attempts::take(const Report& report, const Answer& answer) {
  if (answer) return take_rows(report, *answer);
  report_is_lost(report);
  if (report.most > 0 && answer.error().kind == Fault::Kind::unknown) lost_claim_ = true;
  if (answer.error().kind == Fault::Kind::unknown) return membership_.beat_soon();
  if (answer.error().kind == Fault::Kind::refused) {
    log_.warn("the queue's database refused a report",
              {{"state", answer.error().sqlstate}, {"what", answer.error().message}});
  }
  soon_timer_ = loop_.after(1s, [this] { flush(); });
}

void Attempts::take_rows(const Report& report, const Result& rows) {
  for (const Report::Output& output : report.outputs) {
    const auto found = attempts_.find(output.run);
    if (found != attempts_.end()) found->second.output.arrived();
  }
  remember_told(report);
  const int what = rows.column("what");
  const int attempt = rows.column("attempt");
  const auto number = [&rows](std::size_t row, int column) { return rows.number(row, column).value_or(0); };
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    const std::string_view kind = rows.text(row, what);
    if (kind != "end" && kind != "fenced") continue;
    const auto found = find(static_cast<TaskId>(number(row, rows.column("id"))), number(row, rows.column("fence")));
    if (found == attempts_.end()) continue;
    const RunId run = found->first;
    const bool is_end = std::ranges::any_of(report.ends, [run](const End& end) { return end.run == run; });
    if (kind == "end" && number(row, attempt) == static_cast<std::int64_t>(State::queued)) sweep_for(report, run);
    kind == "end" ? take_end(run, number(row, attempt)) : take_fenced(run, is_end);
  }
  for (const End& end : report.ends) {  // what was not answered is told again, a little later
    const auto found = attempts_.find(end.run);
    if (found == attempts_.end() || !found->second.end_told) continue;
    log_.warn("the end of a task was not answered, and is told again", {{"task", to_text(end.run.task)}});
    found->second.end_told = false;
    soon_timer_ = loop_.after(1s, [this] { flush(); });
  }
  take_claims(rows, report.most);
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    if (rows.text(row, what) != "ready") continue;
    membership_.wake(static_cast<std::int32_t>(number(row, rows.column("lane"))), number(row, attempt));
  }
  if (!report.starts.empty() || !report.ends.empty()) membership_.number_soon();
}

// It is tried again then.
void Attempts::sweep_for(const Report& report, RunId run) {
  for (const End& end : report.ends) {
    if (end.run == run) membership_.sweep_in(end.retry + 1ms);
  }
}

// It may have arrived or not: told again, it changes nothing that it has changed.
void Attempts::report_is_lost(const Report& report) {
  for (const Report::Start& start : report.starts) {
    if (const auto found = attempts_.find(start.run); found != attempts_.end()) found->second.start_told = false;
  }
  for (const End& end : report.ends) {
    if (const auto found = attempts_.find(end.run); found != attempts_.end()) found->second.end_told = false;
  }
  if (report.most > 0) wants_claim_ = true;
}

std::size_t Attempts::Reported::size() const {
  return sizeof(Reported) + attempt.claim.size() + attempt.env.size() +
         (attempt.outcome ? attempt.outcome->result.size() : 0);
}

void Attempts::remember_end(RunId run, const Attempt& attempt) {
  if (attempt.never_began) return;
  reported_.push_back({membership_.now(), run, attempt});
  reported_bytes_ += reported_.back().size();
  while (!reported_.empty() &&
         (reported_bytes_ > most_reported || membership_.last_beat() - reported_.front().at > kept_reports)) {
    reported_bytes_ -= reported_.front().size();
    reported_.pop_front();
  }
}

void Attempts::remember_told(const Report& report) {
  for (const End& end : report.ends) {
    if ((end.flags & End::put_back) == 0 && attempts_.contains(end.run)) told_.insert(end.fence);
  }
  if (told_.size() > most_told) told_.erase(told_.begin());
}

// ---- claims ----

std::string Attempts::limits() const {
  json::object groups;
  json::object agents;
  for (const auto& [name, group] : calls_.settings().groups) {
    if (group.max_running) groups[name] = *group.max_running;
  }
  for (const auto& [name, agent] : agents_.all()) {
    if (agent.max_running) agents[name] = *agent.max_running;
  }
  if (groups.empty() && agents.empty()) return "{}";  // which the database has a shorter way for
  return rpc::to_text(json::object{{"groups", std::move(groups)}, {"agents", std::move(agents)}});
}

std::vector<std::string> Attempts::closed_groups() const {
  std::vector<std::string> closed;
  for (const auto& [name, group] : calls_.settings().groups) {
    if (group.paused) closed.push_back(name);
  }
  return closed;
}

// Fewer than asked for: there are none, and we wait. Written down, it is looked at once more: a task that came between
// was not told.
void Attempts::take_claims(const Result& rows, std::size_t asked) {
  const int what = rows.column("what");
  std::size_t got = 0;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    if (rows.text(row, what) != "claim") continue;
    take_claim(rows, row);
    membership_.took(static_cast<std::int32_t>(rows.number(row, rows.column("lane")).value_or(0)));
    ++got;
  }
  if (asked > 0) membership_.looked();
  if (asked == 0 || closed_) return;
  if (got == asked && free_slots() > 0) wants_claim_ = true;
  if (got == asked || waiting_ || telling_wait_ || !line_.standing().listens) return;
  tell_wait();
}

void Attempts::take_claim(const Result& rows, std::size_t row) {
  const auto text = [&](std::string_view column) { return std::string(rows.text(row, rows.column(column))); };
  const auto number = [&](std::string_view column) { return rows.number(row, rows.column(column)).value_or(0); };
  const RunId run{static_cast<TaskId>(number("id")), static_cast<std::uint32_t>(number("attempt"))};
  const auto [place, is_new] = attempts_.emplace(
      run, Attempt{.fence = number("fence"), .output = OutputSender(options_.tasks, run, options_.output)});
  Attempt& attempt = place->second;
  if (!is_new) return log_.error("an attempt was claimed twice", {{"task", to_text(run.task)}});
  attempt.agent = text("agent");
  attempt.group = text("grp");
  attempt.on_lost = number("on_lost") == 0 ? OnLost::fail : OnLost::retry;
  attempt.retries = static_cast<std::uint32_t>(number("retries"));
  attempt.spared = static_cast<std::uint32_t>(number("spared"));
  attempt.claimed = membership_.now();
  attempt.env = text("env");
  const std::string body = text("body");
  attempt.claim = claim_text({.agent = attempt.agent,
                              .group = attempt.group,
                              .priority = number("priority"),
                              .retries = attempt.retries,
                              .on_lost = attempt.on_lost,
                              .needs = rows.text(row, rows.column("needs")),
                              .submitter = rows.text(row, rows.column("submitter")),
                              .has_env = !attempt.env.empty(),
                              .body = body});
  std::erase(turns_, attempt.group);
  turns_.push_back(attempt.group);
  if (closed_) return put_back(run, attempt, {});
  start(run, attempt, body);
}

void Attempts::start(RunId run, Attempt& attempt, std::string_view body) {
  tl::expected<Assignment, std::string> assignment = assignment_of(run, attempt, body);
  if (!assignment) {
    attempt.outcome = Outcome{.kind = Outcome::Kind::not_started, .ended_at = loop_.clock().utc()};
    attempt.outcome->problem = assignment.error();
    attempt.made_here = true;
    attempt.gone = true;
    return soon();
  }
  const auto provided = agents_.provide_for(assignment->limits);
  shortages_.set_limits(run.task, provided ? std::string() : provided.error());
  if (!provided) return put_back(run, attempt, limits_pause);
  if (calls_.starts) calls_.starts(run.task, body);
  runner_->start(*assignment);
  calls_.began(run, true);
}

// Or why there is none. The claim gets what the body says, before that becomes this machine's.
tl::expected<Assignment, std::string> Attempts::assignment_of(RunId run, Attempt& attempt,
                                                              std::string_view body) const {
  try {
    Submission submission = from_body(body);
    attempt.claim += "," + request_text(submission);
    add_env(submission, attempt.env);
    submission.cwd = local_folder(calls_.project(), submission.cwd);
    if (agents_.is_untrusted(attempt.agent))
      return tl::unexpected("its agent is not trusted on this machine: " + agents_.distrust().cure);
    std::optional<Assignment> assignment = agents_.assignment(run, attempt.agent, std::move(submission));
    if (!assignment) return tl::unexpected(std::string("the settings of this machine have no agent of that name"));
    assignment->claim = Claim{.fence = static_cast<std::uint64_t>(attempt.fence),
                              .worker = options_.worker,
                              .leased = attempt.on_lost == OnLost::retry};
    return std::move(*assignment);
  } catch (const std::exception&) {
    return tl::unexpected(std::string("what was asked for is damaged in the store"));
  }
}

// It never began; another one, or we, may begin it.
void Attempts::put_back(RunId run, Attempt& attempt, base::Duration pause) {
  attempt.never_began = true;
  attempt.pause = pause;
  attempt.gone = true;
  calls_.never_began(run);
  soon();
}

// ---- what keepers tell ----

void Attempts::on_started(RunId run, const Started& started) {
  const auto found = attempts_.find(run);
  if (found == attempts_.end()) return;
  Attempt& attempt = found->second;
  attempt.started = started;
  if (!attempt.start_told) {
    log_.info("task started", {{"task", to_text(run.task)}, {"agent", attempt.agent}, {"pid", started.pid}});
  }
  if (attempt.adopted) calls_.began(run, false);
  if (!attempt.adopted) shortages_.one_has_started();
  if (attempt.fenced || attempt.cancelling) runner_->cancel(run);
  soon();
}

void Attempts::on_ended(RunId run, const Outcome& outcome) {
  const auto found = attempts_.find(run);
  if (found == attempts_.end()) return;
  found->second.outcome = outcome;
  flush();
}

void Attempts::on_gone(RunId run) {
  const auto found = attempts_.find(run);
  if (found == attempts_.end()) return;
  found->second.gone = true;
  calls_.gone(run);
  forget_if_over(run);
  look(false);
}

void Attempts::on_never_began(RunId run, const std::string& why) {
  const auto found = attempts_.find(run);
  if (found == attempts_.end()) return;
  Attempt& attempt = found->second;
  if (!why.empty() && !attempt.adopted) shortages_.met_by(run.task, why);
  if (attempt.start_told || attempt.started) {  // it did begin, and all that told of it is gone
    attempt.outcome = Outcome{.kind = Outcome::Kind::lost, .ended_at = loop_.clock().utc()};
    attempt.gone = true;
    calls_.never_began(run);
    return flush();
  }
  put_back(run, attempt, attempt.adopted ? base::Duration::zero() : base::Duration(1s));
}

void Attempts::cancel(RunId run, Attempt& attempt) {
  if (std::exchange(attempt.cancelling, true) || attempt.concluded || attempt.gone) return;
  runner_->cancel(run);
}

// ---- ends ----

// `state` is that of the task: 1 says that it is being cancelled, and the end counts when the tree is gone.
void Attempts::take_end(RunId run, std::int64_t state) {
  Attempt& attempt = attempts_.at(run);
  attempt.end_told = false;
  if (state == static_cast<std::int64_t>(State::running)) return cancel(run, attempt);
  shortages_.forget(run.task);
  log_end(run, attempt, state);
  remember_end(run, attempt);
  conclude(run, attempt);
  calls_.ended(run.task);
}

void Attempts::log_end(RunId run, const Attempt& attempt, std::int64_t state) const {
  if (attempt.never_began || attempt.told_again || !attempt.outcome) return;
  const Outcome& outcome = *attempt.outcome;
  const bool has_code = outcome.kind == Outcome::Kind::exited;
  const bool has_signal = outcome.kind == Outcome::Kind::signalled;
  const std::string code = has_code ? std::to_string(outcome.code) : "";
  const std::string signal = has_signal ? '"' + process::signal_name(outcome.signal) + '"' : "";
  const bool has_failed = static_cast<State>(state) == State::failed;
  const std::string reason = has_failed ? '"' + std::string(name_of(failure_of(outcome).reason)) + '"' : "";
  log_.info("task " + std::string(name_of(static_cast<State>(state))), {{"task", to_text(run.task)},
                                                                        {"agent", attempt.agent},
                                                                        {"exit", base::JsonText{code}},
                                                                        {"signal", base::JsonText{signal}},
                                                                        {"reason", base::JsonText{reason}}});
}

// Its end is told all the same, once: of a task that was given up it is kept as one that came late.
void Attempts::take_fenced(RunId run, bool end_is_told) {
  Attempt& attempt = attempts_.at(run);
  if (attempt.concluded) return;
  const bool is_new = !std::exchange(attempt.fenced, true);
  attempt.end_told = false;
  if (end_is_told || attempt.never_began || (attempt.gone && !attempt.outcome)) return conclude(run, attempt);
  if (attempt.gone) return;
  if (is_new) {
    log_.warn("an attempt is not this worker's any more, and is ended",
              {{"task", to_text(run.task)}, {"fence", attempt.fence}});
  }
  runner_->cancel(run);
}

void Attempts::conclude(RunId run, Attempt& attempt) {
  attempt.concluded = true;
  const bool has_keeper = !attempt.never_began && !attempt.made_here && !attempt.told_again && attempt.outcome;
  if (has_keeper) runner_->acknowledge(run);
  forget_if_over(run);
}

void Attempts::forget_if_over(RunId run) {
  const auto found = attempts_.find(run);
  if (found == attempts_.end() || !found->second.gone || !found->second.concluded) return;
  attempts_.erase(found);
  say_if_stopped();
}

void Attempts::say_if_stopped() const {
  if (attempts_.empty() && is_idle()) calls_.stopped();
}

std::optional<base::UtcTime> Attempts::usage_limit_of(RunId run, const Attempt& attempt) const {
  const auto limit = usage_limits_.find(attempt.agent);
  if (limit == usage_limits_.end()) return std::nullopt;
  std::string output;
  if (limit->second.wants_output(*attempt.outcome)) {
    try {
      output = end_of_output(options_.tasks, run, UsageLimit::most_output);
    } catch (const std::system_error&) {
      output = attempt.outcome->result;  // what its keeper has of it
    }
  }
  return limit->second.until(*attempt.outcome, output, std::min(attempt.outcome->ended_at, loop_.clock().utc()));
}

void Attempts::end_running() {
  for (auto& [run, attempt] : attempts_) {
    if (attempt.gone || attempt.concluded || attempt.ended_by_stop) continue;
    attempt.ended_by_stop = !attempt.cancelling && !attempt.outcome;  // what has ended has ended by itself
    runner_->cancel(run);
  }
}

std::vector<TaskId> Attempts::running() const {
  std::vector<TaskId> ids;
  for (const auto& [run, attempt] : attempts_) {
    if (attempt.started && !attempt.outcome) ids.push_back(run.task);
  }
  return ids;
}

std::optional<RunId> Attempts::latest(TaskId id) const {
  const auto behind = attempts_.lower_bound({id + 1, 0});
  if (behind == attempts_.begin() || std::prev(behind)->first.task != id) return std::nullopt;
  return std::prev(behind)->first;
}

bool Attempts::is_live(RunId run) const {
  const auto found = attempts_.find(run);
  return found != attempts_.end() && !found->second.gone;
}

std::optional<TaskId> Attempts::task_of_keeper(pid_t keeper) const {
  const std::optional<RunId> run = runner_ == nullptr ? std::nullopt : runner_->run_of_keeper(keeper);
  return run ? std::optional(run->task) : std::nullopt;
}

}  // namespace duet::task::postgres
