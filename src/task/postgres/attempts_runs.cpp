#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "duet/rpc/value.h"
#include "process/launch.h"
#include "task/failure_text.h"
#include "task/output.h"
#include "task/postgres/attempts.h"
#include "task/postgres/records.h"
#include "task/postgres/report.h"
#include "task/postgres/shared_place.h"

// The life of an attempt here: it is claimed, started, heard of from its keeper, and concluded.

namespace duet::task::postgres {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr base::Duration limits_pause = 10s;

}  // namespace

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
void Attempts::take_claims(const Report& report, const Result& rows) {
  const int what = rows.column("what");
  std::size_t got = 0;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    if (rows.text(row, what) != "claim") continue;
    take_claim(rows, row);
    membership_.took(static_cast<std::int32_t>(rows.number(row, rows.column("lane")).value_or(0)));
    ++got;
  }
  if (report.most > 0) take_places(report, rows);
  const bool is_full = got == report.most;
  if (report.is_behind && !is_full) {  // nothing more is there but what may have come before those places
    full_look_ = loop_.at(full_look_at_, [this] { look(false); });
  } else if (!is_full) {
    found_less_ = waiting_;
  }
  if (report.most > 0) membership_.looked();
  if (report.most == 0 || closed_) return;
  if (is_full && free_slots() > 0) wants_claim_ = true;
  if (is_full || waiting_ || telling_wait_ || !line_.standing().listens) return;
  tell_wait();
}

// While an old snapshot keeps entries of tasks that are gone, a full look walks over all of them, some 200 ns each. So
// the next one comes 50 times as long after it, at most a second. Until then looks begin behind the last task that was
// taken: what comes before it, by its priority say, is seen so much later.
void Attempts::take_places(const Report& report, const Result& rows) {
  constexpr base::Duration most = 1s;
  constexpr base::Duration for_entry = 10us;
  const auto number = [&rows](std::size_t row, std::string_view column) {
    return rows.number(row, rows.column(column)).value_or(0);
  };
  if (!report.is_behind) places_.clear();
  bool is_slow = report.is_behind;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    if (rows.text(row, rows.column("what")) != "slow") continue;
    is_slow = true;
    full_look_at_ = loop_.now() + std::min(most, number(row, "fence") * for_entry);
  }
  for (std::size_t row = 0; is_slow && row < rows.rows(); ++row) {
    if (rows.text(row, rows.column("what")) != "claim") continue;
    const std::pair place(number(row, "priority"), static_cast<TaskId>(number(row, "id")));
    const auto [known, is_new] = places_.try_emplace(number(row, "lane"), place);
    const bool is_later = place.first < known->second.first ||
                          (place.first == known->second.first && place.second > known->second.second);
    if (!is_new && is_later) known->second = place;  // rows come in no order
  }
}

Argument Attempts::places() const {
  json::object all;
  for (const auto& [lane, place] : places_) all[std::to_string(lane)] = json::array{place.first, place.second};
  return rpc::to_text(all);
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
  // Who was stopped for longer than its lease may have been given up since, with what it had claimed.
  if (closed_ || membership_.is_lease_over()) return put_back(run, attempt, {});
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
    // Who submitted it may have had no agent of that name to ask.
    if (auto objection = agents_.objection_to(attempt.agent, submission.prompt)) return tl::unexpected(*objection);
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
  Attempt& attempt = found->second;
  attempt.outcome = outcome;
  if (attempt.ended_as_fenced && !attempt.fenced) take_back(attempt);
  if (outcome.kind == Outcome::Kind::not_started) attempt.ended_by_stop = false;  // there was nothing to end
  flush();
}

void Attempts::on_gone(RunId run) {
  const auto found = attempts_.find(run);
  if (found == attempts_.end()) return;
  found->second.gone = true;
  calls_.gone(run);
  forget_if_over(run);
  found_less_&& waiting_ ? flush() : look(false);
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
  if (state == static_cast<std::int64_t>(State::cancelled)) attempt.cancelling = true;  // no beat may have told us
  if (!attempt.never_began) announce(run, attempt);
  shortages_.forget(run.task);
  log_end(run, attempt, state);
  remember_end(run, attempt);
  conclude(run, attempt);
  calls_.ended(run.task);
}

void Attempts::announce(RunId run, Attempt& attempt) {
  if (!std::exchange(attempt.announced, true)) calls_.announced(run);
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
  if (is_new) attempt.refused_by = membership_.timeline();
  if (is_new) calls_.fenced(run);
  if (end_is_told && attempt.outcome && attempt.refused_by != 0) remember_end(run, attempt);
  if (end_is_told || attempt.never_began || (attempt.gone && !attempt.outcome)) return conclude(run, attempt);
  if (attempt.gone) return;
  if (is_new) {
    log_.warn("an attempt is not this worker's any more, and is ended",
              {{"task", to_text(run.task)}, {"fence", attempt.fence}});
  }
  attempt.ended_as_fenced = attempt.ended_as_fenced || !attempt.outcome;
  runner_->cancel(run);
}

// What one server took for somebody else's is ours again at the next, which has forgotten that.
void Attempts::take_back(Attempt& attempt) {
  attempt.fenced = false;
  attempt.refused_by = 0;
  if (attempt.outcome && attempt.ended_as_fenced) attempt.outcome->kind = Outcome::Kind::lost;
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
  const bool is_known = found->second.announced || found->second.adopted || found->second.never_began;
  attempts_.erase(found);
  if (!is_known) calls_.never_began(run);  // for all that others know
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

}  // namespace duet::task::postgres
