#include <algorithm>
#include <utility>

#include "duet/rpc/object_text.h"
#include "task/postgres/attempts.h"
#include "task/postgres/report.h"

// What the database says that we have: when we join, in a beat, and after a failover, when it is told again.

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration kept_reports = 2min;                           // before the last beat that was answered
constexpr base::Duration longest_silence = std::chrono::hours(24 * 7);  // `lost_after` is no longer
constexpr std::size_t most_reported = std::size_t{8} << 20U;
constexpr std::size_t most_told = 10'000;

}  // namespace

// What it believes us to have counts: what else we have is not ours any more.
void Attempts::joined(const std::vector<OwnAttempt>& own) {
  waiting_ = false;
  set_poll_timer();
  set_output_timer();
  std::set<std::pair<TaskId, std::int64_t>> ours;
  for (const OwnAttempt& each : own) {
    ours.emplace(each.task, each.fence);
    const bool will_be_told = membership_.is_telling_again() && was_reported(each.fence);
    if (find(each.task, each.fence) == attempts_.end() && !will_be_told) take_unknown(each);
  }
  if (std::exchange(is_first_join_, false)) membership_.is_telling_again() ? take_forgotten() : take_given_up();
  if (membership_.is_telling_again()) return;  // it does not know yet what we have
  std::vector<RunId> others;
  for (const auto& [run, attempt] : attempts_) {
    if (!attempt.concluded && !attempt.fenced && !ours.contains({run.task, attempt.fence})) others.push_back(run);
  }
  for (const RunId run : others) take_fenced(run);
}

void Attempts::given_up() {
  std::vector<RunId> all;
  for (const auto& [run, attempt] : attempts_) {
    if (!attempt.concluded && !attempt.fenced) all.push_back(run);
  }
  for (const RunId run : all) take_fenced(run);
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
  describe(attempt, own);
  attempt.adopted = true;
  attempt.cancelling = own.cancelling;
  attempt.start_told = own.started;
  attempt.claimed = membership_.now();
  if (is_first_join_ && (recorded_.contains(run) || own.started)) return runner_->adopt(run);
  if (!own.started && !may_have_run(run, attempt)) return put_back(run, attempt, {});
  attempt.outcome = Outcome{.kind = Outcome::Kind::lost, .ended_at = loop_.clock().utc()};
  attempt.made_here = true;
  attempt.gone = true;
  soon();
}

// Of what a daemon before ran and told the end of only the output is left, if there was any. A server that took over
// may know neither: what is to run once at most is taken to have run.
bool Attempts::may_have_run(RunId run, const Attempt& attempt) const {
  if (told_.contains(attempt.fence) || given_up_.contains({run, attempt.fence})) return true;
  if (!is_first_join_ || !membership_.is_telling_again()) return false;
  if (attempt.on_lost == OnLost::fail) return true;
  const std::vector<RunId> outputs = runner_->outputs();
  return std::ranges::find(outputs, run) != outputs.end();
}

// What a daemon before ran here and a server that took over may not know of: it is told, and the server decides. A beat
// then tells what else is to be known of it.
void Attempts::take_forgotten() {
  for (const RunId run : recorded_) {
    const std::optional<LeftRun> left = attempts_.contains(run) ? std::nullopt : runner_->left_by(run);
    if (!left) continue;
    Attempt attempt{.fence = static_cast<std::int64_t>(left->claim.fence),
                    .output = OutputSender(options_.tasks, run, options_.output)};
    attempt.on_lost = left->claim.leased ? OnLost::retry : OnLost::fail;
    attempt.adopted = true;
    attempt.claimed = membership_.now();
    attempts_.emplace(run, std::move(attempt));
    runner_->adopt(run);
  }
}

// What a daemon before ran here and was lost for good while there was none: it is ended, and its end is told, which is
// kept as one that came late. Of what was told before this changes nothing.
void Attempts::take_given_up() {
  for (const RunId run : recorded_) {
    const std::optional<LeftRun> left = attempts_.contains(run) ? std::nullopt : runner_->left_by(run);
    const bool is_old = left && left->outcome && left->outcome->ended_at + longest_silence < loop_.clock().utc();
    if (!left || is_old || (left->gone && !left->outcome)) continue;
    Attempt attempt{.fence = static_cast<std::int64_t>(left->claim.fence),
                    .output = OutputSender(options_.tasks, run, options_.output)};
    given_up_.emplace(run, attempt.fence);
    attempt.adopted = true;
    attempt.fenced = true;
    attempt.claimed = membership_.now();
    if (left->gone) attempt.outcome = left->outcome;
    attempt.gone = attempt.made_here = attempt.told_again = left->gone;
    attempts_.emplace(run, std::move(attempt));
    if (left->gone) continue;
    runner_->adopt(run);
    runner_->cancel(run);
  }
  soon();
}

void Attempts::describe(Attempt& attempt, const OwnAttempt& own) {
  attempt.agent = own.agent;
  attempt.retries = own.retries;
  attempt.spared = own.spared;
  attempt.on_lost = own.on_lost;
}

void Attempts::beaten(const Membership::Calls::Beat& beat) {
  forget_old_ends();
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
  if ((in_flight_ && changing_) || beat.sent < changed_) return;
  for (const OwnAttempt& own : beat.own) {
    const auto found = find(own.task, own.fence);
    if (found == attempts_.end()) take_unknown(own);
    if (found != attempts_.end() && found->second.agent.empty()) describe(found->second, own);
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
    if (is_lost || has == recovery.output.end()) continue;
    attempt.output.go_back_to(has->second);
    if (attempt.refused_by != 0) take_back(attempt);
  }
  for (const RunId run : lost) take_fenced(run);
  tell_ends_again(recovery);
}

// What the server takes for running has ended; what it has not taken back it knows, but the next one may not. Of two
// claims of the same attempt the newest counts.
void Attempts::tell_ends_again(const Membership::Calls::Recovery& recovery) {
  reported_bytes_ = 0;
  std::deque<Reported> ends = std::exchange(reported_, {});
  for (auto at = ends.rbegin(); at != ends.rend(); ++at) {
    Reported& reported = *at;
    const auto has = recovery.output.find(reported.attempt.fence);
    const bool is_known = std::ranges::find(recovery.fenced, reported.attempt.fence) != recovery.fenced.end();
    if (is_known || has == recovery.output.end()) {
      reported_bytes_ += reported.size();
      reported_.push_front(std::move(reported));
      continue;
    }
    const std::int64_t fence = reported.attempt.fence;
    const auto [place, is_new] = attempts_.try_emplace(reported.run, std::move(reported.attempt));
    Attempt& attempt = place->second;
    if (!is_new && (!attempt.concluded || attempt.fence != fence)) continue;  // a later claim of the same attempt
    attempt.gone = attempt.gone || is_new;
    attempt.concluded = false;
    attempt.told_again = true;
    if (attempt.refused_by != 0) take_back(attempt);
    attempt.output.go_back_to(has->second);
    soon();
  }
}

std::string Attempts::remembered() const {
  std::string running;
  const auto add = [&running, this](RunId run, const Attempt& attempt) {
    running += (running.empty() ? "[" : ",") + recovery_text(run, attempt, running.size());
  };
  for (const auto& [run, attempt] : attempts_) {
    const bool may_be_ours = !attempt.fenced || (attempt.refused_by != 0 && !is_refused_here(attempt));
    if (!attempt.concluded && !attempt.never_began && may_be_ours) add(run, attempt);
  }
  // What has ended, too: its end follows in a report, with the output that the server lacks. What is older is known
  // there, and may have been removed.
  for (const Reported& reported : reported_) {
    if (!is_old(reported) && !is_refused_here(reported.attempt)) add(reported.run, reported.attempt);
  }
  return running.empty() ? "[]" : running + "]";
}

bool Attempts::is_refused_here(const Attempt& attempt) const { return attempt.refused_by == membership_.timeline(); }

std::string Attempts::recovery_text(RunId run, const Attempt& attempt, std::size_t before) const {
  rpc::ObjectText told;
  told.add("task", run.task).add("fence", attempt.fence).add("attempt", run.attempt).add("spared", attempt.spared);
  if (attempt.cancelling) told.add_json("cancelling", "true");  // its cancel may be lost, too
  // Also a start that was not told yet: what has begun is never queued again.
  const std::optional<Started>& started =
      attempt.started || !attempt.outcome ? attempt.started : attempt.outcome->started;
  if (started) told.add("pid", started->pid).add("ago", ago_of(loop_.clock(), started->at));
  // What it was claimed with is for a row that is lost; without a bound nothing at all could be told. What a server
  // refused may have been removed.
  const bool has_room = attempt.refused_by == 0 && before + attempt.claim.size() + attempt.env.size() < most_reported;
  if (!attempt.env.empty() && has_room) told.add("env", attempt.env);
  std::string text = told.take();
  if (!attempt.claim.empty() && has_room) text.insert(text.size() - 1, "," + attempt.claim);
  return text;
}

std::size_t Attempts::Reported::size() const {
  return sizeof(Reported) + attempt.claim.size() + attempt.env.size() +
         (attempt.outcome ? attempt.outcome->result.size() : 0);
}

void Attempts::remember_end(RunId run, const Attempt& attempt) {
  if (attempt.never_began) return;
  reported_.push_back({membership_.now(), run, attempt});
  reported_bytes_ += reported_.back().size();
  forget_old_ends();
}

bool Attempts::is_old(const Reported& reported) const { return membership_.last_beat() - reported.at > kept_reports; }

void Attempts::forget_old_ends() {
  while (!reported_.empty() && (reported_bytes_ > most_reported || is_old(reported_.front()))) {
    reported_bytes_ -= reported_.front().size();
    reported_.pop_front();
  }
}

void Attempts::remember_told(const Report& report) {
  for (const End& end : report.ends) {
    const auto found = attempts_.find(end.run);
    if (found == attempts_.end() || (end.flags & End::put_back) != 0) continue;
    // What was given up before we came may be of another queue, with fences that this one has yet to give: given_up_.
    if (!found->second.adopted || !found->second.fenced) told_.insert(end.fence);
  }
  while (told_.size() > most_told) told_.erase(told_.begin());
}

}  // namespace duet::task::postgres
