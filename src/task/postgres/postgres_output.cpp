#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include <boost/json/array.hpp>

#include "task/output.h"
#include "task/postgres/output_view.h"
#include "task/postgres/postgres_queue.h"
#include "task/postgres/records.h"
#include "task/refusal.h"
#include "task/task_output.h"
#include "task/transition.h"

// Output: from the files here, where all of it was written here; else from the database.

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration between_looks = 300ms;
constexpr base::Duration between_tidyings = 10min;
constexpr std::size_t most_began_early = 4096;

}  // namespace

void PostgresQueue::read_output(const OutputQuestion& question, const GotOutput& got) {
  ask("read_output_state_v1", {argument_of(question.id)},
      [this, question, got](const tl::expected<Object, rpc::Error>& state) {
        if (!state) return got(tl::unexpected(state.error()));
        if (!state->contains("state")) return got(tl::unexpected(unknown_task(to_text(question.id))));
        const RunId last{question.id, static_cast<std::uint32_t>(number_in(*state, "attempt"))};
        // What it writes is there first, and what is before it may have been written elsewhere.
        const std::uint64_t begin = OutputView(*state).begin_of(last.attempt);
        const bool is_here = is_ours(last) && question.offset >= begin;
        if (!is_here && !has_all_output(question.id, *state)) return read_remote(question, *state, got);
        try {
          const GoneOutput before = is_here ? GoneOutput{.attempts = last.attempt - 1, .bytes = begin} : GoneOutput{};
          Output output{.piece = read_task_output(options_.tasks, question.id, last.attempt, question.offset,
                                                  question.limit, question.stream, before)};
          const auto run = attempts_.latest(question.id);
          const bool is_over =
              has_ended(static_cast<State>(number_in(*state, "state"))) && (!run || !attempts_.is_live(*run));
          output.done = is_over && output.piece.next >= output.piece.total;
          got(output);
        } catch (const std::system_error& error) {
          log_.warn("output of a task cannot be read",
                    {{"task", to_text(question.id)}, {"reason", error.code().message()}});
          read_remote(question, *state, got);
        }
      });
}

// That very attempt is here, and not a later one.
bool PostgresQueue::is_ours(RunId run) const {
  return attempts_.latest(run.task) == run && attempts_.is_here(run.task, run.attempt);
}

// Every attempt that the database tells of has its file here, with all that was written. What an attempt wrote that was
// taken from us, and was not sent any more, counts for nobody.
bool PostgresQueue::has_all_output(TaskId id, const Object& state) const {
  const auto attempts = static_cast<std::uint32_t>(number_in(state, "attempt"));
  const auto& told = array_in(state, "attempts");
  if (attempts == 0) return false;
  for (std::uint32_t attempt = 1; attempt <= attempts; ++attempt) {
    const RunId run{id, attempt};
    if (is_ours(run)) continue;
    const bool is_last = attempts_.latest(id) == run;
    const auto found = std::ranges::find_if(
        told, [&](const boost::json::value& each) { return number_in(each.as_object(), "attempt") == attempt; });
    const std::int64_t total = found == told.end() ? 0 : number_in(found->as_object(), "total");
    if (found != told.end() && flag_in(found->as_object(), "gone")) return false;
    if (is_last && total == 0) continue;
    try {
      const std::uint64_t here = task::read_output(options_.tasks, run, UINT64_MAX, 0).total;
      const auto there = static_cast<std::uint64_t>(total);
      if (here < there || (here > there && attempt < attempts)) return false;
    } catch (const std::system_error&) {
      return false;
    }
    if (total == 0 && found == told.end() && attempt == attempts)
      return false;  // it runs elsewhere, and has said nothing
  }
  return true;
}

// Another value: another server may have taken over.
std::pair<std::int64_t, bool> PostgresQueue::server_now() const {
  return {membership_.told_timeline(), membership_.is_telling_again()};
}

void PostgresQueue::read_remote(const OutputQuestion& question, const Object& state, const GotOutput& got) {
  const auto view = std::make_shared<OutputView>(state);
  line_.call(Line::Way::work, "read_output_v1",
             {argument_of(question.id), argument_of(view->start(question.offset)), argument_of(question.limit)},
             lifetime_.bind([this, question, view, got, server = server_now()](const Answer& answer) {
               if (!answer) return got(tl::unexpected(error_of(answer.error())));
               // One that took over between the two questions may lack what the first one told of.
               if (server != server_now()) return read_output(question, got);
               got(view->read(*answer, question.offset, question.limit, question.stream));
             }));
}

// ---- files of tasks that are gone ----

void PostgresQueue::tidy_in(base::Duration wait) {
  tidy_timer_ = loop_.after(wait, [this] { tidy(); });
}

// Others remove tasks, too, and do not say so: now and then the database is asked which of ours it still has.
void PostgresQueue::tidy() {
  tidy_in(between_tidyings);
  // A server that took over may not know yet what ran.
  if (runner_ == nullptr || !membership_.is_joined() || membership_.is_telling_again()) return;
  const auto runs = std::make_shared<std::vector<RunId>>(runner_->outputs());
  std::set<std::int64_t> ids;
  for (const RunId run : *runs) ids.insert(static_cast<std::int64_t>(run.task));
  if (ids.empty()) return;
  line_.call(Line::Way::work, "read_known_v1", {array_of(std::vector<std::int64_t>(ids.begin(), ids.end()))},
             lifetime_.bind([this, runs, told = membership_.told_timeline()](const Answer& answer) {
               // It may come from a server that has taken over since.
               if (!answer || membership_.is_telling_again() || told != membership_.told_timeline()) return;
               std::set<TaskId> known;
               for (std::size_t row = 0; row < answer->rows(); ++row) {
                 known.insert(static_cast<TaskId>(answer->number(row, 0).value_or(0)));
               }
               remove_outputs(std::move(*runs), known);
             }));
}

// And of those that are known, the oldest beyond `keep_output`: the database has the bounded copy.
void PostgresQueue::remove_outputs(std::vector<RunId> runs, const std::set<TaskId>& known) {
  std::sort(runs.begin(), runs.end());
  std::uint64_t bytes = 0;
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    if (attempts_.latest(run->task)) continue;  // it runs here, or is reported
    bytes += output_size(options_.tasks, *run);
    if (!known.contains(run->task) || bytes > settings_.keep_output) runner_->remove_output(*run);
  }
}

// ---- waiting for more ----

std::optional<Queue::Ticket> PostgresQueue::await_output(TaskId id, base::Duration limit, LookAtOutput look) {
  const Ticket ticket = output_waiters_.wait(id, limit, std::move(look));
  follower_.audience_changed();
  tell_own_output();
  output_waiters_.take(id);
  if (!output_waiters_.is_waiting(ticket)) return std::nullopt;
  watch_output();
  return ticket;
}

void PostgresQueue::stop_awaiting_output(const Ticket& ticket) { output_waiters_.stop_waiting(ticket); }

void PostgresQueue::output_audience_changed() {
  follower_.audience_changed();
  tell_own_output();
  remote_output_.find();
}

// Output comes behind the event that its task has started: by the time that we have caught up it was told, or nobody
// read it.
void PostgresQueue::tell_own_output() {
  std::vector<RunId> runs = follower_.not_begun();
  std::erase_if(runs, [this](RunId run) { return !attempts_.is_announced(run); });
  if (runs.empty()) return;
  events_.catch_up(lifetime_.bind([this, runs] {
    for (const RunId run : runs) {
      if (began_early_.size() >= most_began_early) began_early_.erase(began_early_.begin());
      began_early_.insert(run);
      follower_.began(run);
    }
  }));
}

// Of what runs here we tell, also if that event comes late. An earlier attempt may have left something running.
void PostgresQueue::tell_output_of(RunId run) {
  const bool is_told_here = began_early_.erase(run) > 0 || follower_.follows(run) || is_ours(run);
  is_told_here ? follower_.began(run) : remote_output_.add(run);
}

// Attempts before this one may have run elsewhere.
std::optional<GoneOutput> PostgresQueue::output_before(RunId run) {
  if (!asking_before_.insert(run).second) return std::nullopt;
  ask("read_output_state_v1", {argument_of(run.task)}, [this, run](const tl::expected<Object, rpc::Error>& state) {
    asking_before_.erase(run);
    if (!state || !state->contains("state")) return;  // the follower asks again
    follower_.place_behind(run, {.attempts = run.attempt - 1, .bytes = OutputView(*state).begin_of(run.attempt)});
  });
  return std::nullopt;
}

// The end of a task comes behind its last output, also here, and so does its next start.
void PostgresQueue::finish_remote_output(const std::vector<Event>& events, std::function<void()> then) {
  std::vector<TaskId> ids;
  for (const Event& event : events) {
    if (tells_end(event) || tells_start(event)) ids.push_back(event.task);
  }
  remote_output_.finish(ids, std::move(then));
}

void PostgresQueue::watch_output() {
  if (output_timer_ || left_) return;
  output_timer_ = loop_.after(between_looks, [this] { look_at_output(); });
}

// While somebody waits for output that is written elsewhere.
void PostgresQueue::look_at_output() {
  for (const TaskId id : output_waiters_.awaited()) {
    if (!attempts_.is_here(id, 1)) output_waiters_.take(id);
  }
  if (!output_waiters_.is_empty()) watch_output();
}

}  // namespace duet::task::postgres
