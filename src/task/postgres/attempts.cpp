#include "task/postgres/attempts.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "task/failure_text.h"
#include "task/output.h"
#include "task/postgres/report.h"
#include "task/postgres/shared_place.h"
#include "task/retry.h"

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration poll_with_wakes = 5s;
constexpr base::Duration poll_without = 1s;
constexpr base::Duration between_outputs = 500ms;
constexpr base::Duration longest_unread = 30s;  // an end waits so long for output that cannot be read
constexpr base::Duration together = 10ms;       // starts wait so long for what comes with them
constexpr std::uint64_t output_at_once = std::uint64_t{512} << 10U;
constexpr std::uint64_t most_in_report = std::uint64_t{4} << 20U;
constexpr std::uint64_t most_in_call = std::uint64_t{32} << 20U;  // else no connection takes it

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

Attempts::All::iterator Attempts::find(TaskId task, std::int64_t fence) {
  for (auto at = attempts_.lower_bound({task, 0}); at != attempts_.end() && at->first.task == task; ++at) {
    if (at->second.fence == fence) return at;
  }
  return attempts_.end();
}

// ---- asking and telling ----

void Attempts::set_poll_timer() {
  const base::Duration every = line_.standing().listens ? poll_with_wakes : poll_without;
  const double factor = std::uniform_real_distribution(0.75, 1.25)(chance_);
  poll_timer_ = loop_.after(std::chrono::duration_cast<base::Duration>(every * factor), [this] {
    set_poll_timer();
    look(false);
  });
}

void Attempts::set_output_timer() {
  output_timer_ = loop_.after(between_outputs, [this] {
    set_output_timer();
    if (!attempts_.empty()) flush();
  });
}

// Whoever is woken is no longer written down. It writes itself down again before it looks: so it looks once, also if it
// finds less than it has room for.
void Attempts::look(bool wake_up) {
  wants_claim_ = true;
  if (!wake_up) return flush();
  waiting_ = false;
  woken_ = static_cast<bool>(telling_wait_);
  if (telling_wait_) return;
  free_slots() > 0 ? tell_wait() : flush();
}

void Attempts::tell_wait() {
  membership_.call(Line::Way::work, "wait_v1", {argument_of(true)},
                   lifetime_.bind(telling_wait_.until([this](const Answer& answer) {
                     const bool was_woken = std::exchange(woken_, false);  // the database waits for us no more
                     waiting_ = answer && !was_woken;
                     if (answer || wants_claim_) look(false);
                     say_if_stopped();
                   })));
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
  const std::shared_ptr<Report> report = new_report();
  add_ends(*report);
  add_starts(*report);
  add_output(*report);
  const bool frees_slots = !report->ends.empty();
  if (wants_claim_ || frees_slots) report->most = free_slots();
  wants_claim_ = false;
  if (!report->is_empty()) send(report);
}

// One that nobody takes is lost, why ever that is: what it says is told again.
std::shared_ptr<Report> Attempts::new_report() {
  return {new Report(), [this, there = lifetime_.watch()](const Report* report) {
            const std::unique_ptr<const Report> owned(report);
            if (!there() || report->is_taken) return;
            report_is_lost(*report);
            if (report->most > 0 && report->is_sent) lost_claim_ = true;
          }};
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

// Not one that waits for output which cannot be read: that is tried now and then.
bool Attempts::has_end_to_tell(const All::value_type& each) const {
  return is_end_ready(each) && !each.second.unread_since;
}

bool Attempts::may_run_again(RunId run, const Attempt& attempt) const {
  const Outcome& outcome = *attempt.outcome;
  if (attempt.ended_by_stop || attempt.fenced) return false;
  if (is_lost(outcome) && attempt.on_lost == OnLost::retry) return true;
  if (outcome.kind == Outcome::Kind::exited && outcome.code == 0 && !outcome.timed_out) return false;
  if (attempt.agent.empty()) return true;  // nobody has told yet how often it may
  return run.attempt - std::min(run.attempt, attempt.spared) <= attempt.retries ||
         usage_limits_.contains(attempt.agent);
}

void Attempts::add_ends(Report& report) {
  std::uint64_t bytes = 0;
  for (auto& each : attempts_) {
    if (!is_end_ready(each) || bytes > most_in_report) continue;
    auto& [run, attempt] = each;
    if (!attempt.never_began && !attempt.fenced) {
      std::optional<OutputSender::Portion> last = last_output(run, attempt);
      if (!last) continue;
      const std::uint64_t size = last->size();
      bytes += size;
      budget_.spend(size);
      report.outputs.push_back({run, attempt.fence, std::move(*last)});
    }
    bytes += attempt.outcome ? attempt.outcome->result.size() : 0;
    report.ends.push_back({.run = run, .fence = attempt.fence});
    End& end = report.ends.back();
    if (attempt.never_began) {
      end.flags |= End::put_back;
      end.retry = attempt.pause;
    } else {
      tell_outcome(end, *attempt.outcome, loop_.clock());
      const std::uint32_t failures = std::max(run.attempt - std::min(run.attempt, attempt.spared), 1U);
      end.retry = retry_delay(failures, std::uniform_real_distribution(0.0, 1.0)(chance_));
      if (attempt.ended_by_stop) {
        end.flags |= End::by_stop;
        end.ok = false;
        end.failure = failure_by_stop();
      }
      if (is_lost(*attempt.outcome) && attempt.on_lost == OnLost::retry) end.flags |= End::lease_was_over;
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

// With the end comes the rest of the output, in the same transaction. None: it is too much for that and goes before; or
// it cannot be read, and the file may come back.
std::optional<OutputSender::Portion> Attempts::last_output(RunId run, Attempt& attempt) {
  try {
    const bool can_go_before = !attempt.made_here && (attempt.start_told || attempt.started);
    const std::uint64_t left = attempt.output.left();
    if (left > most_in_report && can_go_before) return std::nullopt;
    if (left > most_in_call) return attempt.output.unreadable(output_size(options_.tasks, run));
    OutputSender::Portion last = attempt.output.next(0, true);
    attempt.unread_since.reset();
    return last;
  } catch (const std::system_error& error) {
    if (!attempt.unread_since) {
      warn_of_unread(run, error);
      attempt.unread_since = membership_.now();
    }
    const bool is_new = membership_.now() - *attempt.unread_since < longest_unread;
    if (is_new && !attempt.made_here && !closed_) return std::nullopt;
    return attempt.output.unreadable(attempt.outcome->usage ? attempt.outcome->usage->output_bytes : 0);
  }
}

void Attempts::warn_of_unread(RunId run, const std::system_error& error) {
  log_.warn("output of a task cannot be read", {{"task", to_text(run.task)}, {"reason", error.code().message()}});
}

// What is too much to come with an end goes before it, whatever the rate.
void Attempts::add_output(Report& report) {
  const std::int64_t budget = budget_.left(loop_.now());
  std::uint64_t left = budget > 0 ? std::min(static_cast<std::uint64_t>(budget), output_at_once) : 0;
  if (std::ranges::any_of(attempts_, [this](const auto& each) { return has_end_to_tell(each); })) {
    left = std::max(left, output_at_once);
  }
  std::vector<All::iterator> others;
  for (auto at = attempts_.begin(); at != attempts_.end(); ++at) {
    // Those whose end waits come first: one that writes without end would keep them back for ever.
    if (!is_end_ready(*at)) {
      others.push_back(at);
    } else {
      left -= std::min(left, add_output_of(report, at->first, at->second, left));
    }
  }
  for (const All::iterator at : others) left -= std::min(left, add_output_of(report, at->first, at->second, left));
}

// How much it is.
std::uint64_t Attempts::add_output_of(Report& report, RunId run, Attempt& attempt, std::uint64_t left) {
  if (attempt.concluded || attempt.never_began || attempt.fenced || attempt.end_told) return 0;
  if (!attempt.start_told || left == 0) return 0;
  try {
    OutputSender::Portion portion = attempt.output.next(left, false);
    if (portion.is_empty()) return 0;
    const std::uint64_t size = portion.size();
    budget_.spend(size);
    report.outputs.push_back({run, attempt.fence, std::move(portion)});
    return size;
  } catch (const std::system_error& error) {
    warn_of_unread(run, error);
    return 0;
  }
}

void Attempts::send(const std::shared_ptr<Report>& report) {
  changing_ = report->most > 0 || !report->ends.empty();
  report->is_behind = report->most > 0 && !places_.empty() && loop_.now() < full_look_at_;
  std::vector<Argument> arguments = arguments_of(*report);
  arguments.insert(arguments.end(),
                   {argument_of(report->most), array_of(turns_), array_of(closed_groups()), limits(),
                    report->is_behind ? places() : Argument(), argument_of(membership_.told_timeline())});
  membership_.call(
      Line::Way::work, "report_v1", std::move(arguments),
      lifetime_.bind(in_flight_.until([this, report, incarnation = membership_.incarnation()](const Answer& answer) {
        if (std::exchange(changing_, false)) changed_ = membership_.now();
        take(*report, answer, incarnation == membership_.incarnation());
        report->is_taken = true;
        if (answer) go_on();
        say_if_stopped();
      })));
  report->is_sent = true;
}

// What has happened meanwhile is told at once, but for output, which has its own time.
void Attempts::go_on() {
  if (lost_claim_) membership_.beat_soon();  // the one that was under way may have been of no use
  if (in_flight_ || soon_timer_) return;
  const auto is_start = [](const auto& each) {
    const Attempt& attempt = each.second;
    return attempt.started && !attempt.start_told && !attempt.concluded && !attempt.fenced;
  };
  const bool has_end = std::ranges::any_of(attempts_, [this](const auto& each) { return has_end_to_tell(each); });
  if (has_end || (wants_claim_ && free_slots() > 0)) return flush();
  if (std::ranges::any_of(attempts_, is_start)) soon();
}

// Until all of it is taken nothing new is asked for: what was claimed counts first. What was claimed before we joined
// anew may have been given up since: the join has told what of it is ours.
void Attempts::take(const Report& report, const Answer& answer, bool claims_count) {
  if (answer) return take_rows(report, *answer, claims_count);
  report_is_lost(report);
  if (report.most > 0 && answer.error().kind == Fault::Kind::unknown) lost_claim_ = true;
  if (answer.error().kind == Fault::Kind::unknown) return membership_.beat_soon();
  if (answer.error().kind == Fault::Kind::refused && answer.error().sqlstate != Membership::untold_state) {
    log_.warn("the queue's database refused a report",
              {{"state", answer.error().sqlstate}, {"what", answer.error().message}});
  }
  soon_timer_ = loop_.after(1s, [this] { flush(); });
}

void Attempts::take_rows(const Report& report, const Result& rows, bool claims_count) {
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
  for (const Report::Start& start : report.starts) {
    const auto found = attempts_.find(start.run);
    if (found != attempts_.end() && !found->second.fenced) announce(start.run, found->second);
  }
  for (const End& end : report.ends) {  // what was not answered is told again, a little later
    const auto found = attempts_.find(end.run);
    if (found == attempts_.end() || !found->second.end_told) continue;
    log_.warn("the end of a task was not answered, and is told again", {{"task", to_text(end.run.task)}});
    found->second.end_told = false;
    soon_timer_ = loop_.after(1s, [this] { flush(); });
  }
  if (report.most > 0 || !report.ends.empty()) found_less_ = false;
  if (claims_count) take_claims(report, rows);
  if (!claims_count && report.most > 0) lost_claim_ = true;  // a beat tells what became of it
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

bool Attempts::is_announced(RunId run) const {
  const auto found = attempts_.find(run);
  return found != attempts_.end() && found->second.announced;
}

bool Attempts::is_here(TaskId id, std::uint32_t attempt) const {
  const std::optional<RunId> run = latest(id);
  if (!run || run->attempt < attempt) return false;
  const Attempt& ours = attempts_.at(*run);
  return !ours.concluded && !ours.fenced;
}

std::optional<TaskId> Attempts::task_of_keeper(pid_t keeper) const {
  const std::optional<RunId> run = runner_ == nullptr ? std::nullopt : runner_->run_of_keeper(keeper);
  return run ? std::optional(run->task) : std::nullopt;
}

}  // namespace duet::task::postgres
