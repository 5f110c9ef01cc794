#include "task/postgres/remote_output.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "duet/base/all_calls.h"
#include "duet/rpc/utf8.h"
#include "duet/rpc/value.h"
#include "task/postgres/output_view.h"
#include "task/postgres/records.h"

namespace duet::task::postgres {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration between_questions = 300ms;
constexpr base::Duration between_searches = 1s;
constexpr base::Duration longest_finish = 1s;
constexpr std::size_t most_asked = 1000;  // tasks in one question
constexpr std::int64_t most_bytes = std::int64_t{1} << 20;
constexpr std::size_t piece_bytes = 64 * 1024;  // as read_outputs_v1 gives of each

}  // namespace

// ---- which ones ----

// One question at a time: whoever comes meanwhile may want what the answer lacks.
void RemoteOutput::find() {
  if (stopped_) return;
  find_again_ = static_cast<bool>(finding_);
  if (!finding_) ask_running();
}

void RemoteOutput::ask_running() {
  find_timer_ = loop_.after(between_searches, [this] { ask_running(); });  // unless there was an answer
  if (finding_) return;
  calls_.ask("read_running_v1", {},
             lifetime_.bind(finding_.until([this](const Answer& answer) { take_running(answer); })));
}

void RemoteOutput::take_running(const Answer& answer) {
  if (!answer) return;  // the timer asks again
  find_timer_.cancel();
  forget_unwanted();
  const int task = answer->column("task");
  const int attempt = answer->column("attempt");
  const int place = answer->column("place");
  for (std::size_t row = 0; row < answer->rows(); ++row) {
    const RunId run{static_cast<TaskId>(answer->number(row, task).value_or(0)),
                    static_cast<std::uint32_t>(answer->number(row, attempt).value_or(0))};
    const auto found = tasks_.find(run.task);
    const bool is_told = found != tasks_.end() && (!found->second.over || found->second.attempt >= run.attempt);
    if (is_told || !calls_.audience.wants(run.task) || calls_.is_here(run)) continue;
    put(run.task,
        {.attempt = run.attempt, .place = static_cast<std::uint64_t>(answer->number(row, place).value_or(0))});
  }
  if (!tasks_.empty() && !timer_) look_in(between_questions);
  if (std::exchange(find_again_, false)) find();
}

void RemoteOutput::add(RunId run) {
  if (stopped_ || !calls_.audience.wants(run.task)) return;
  const auto found = tasks_.find(run.task);
  if (found == tasks_.end()) {
    put(run.task, {.attempt = run.attempt});
  } else if (Told& told = found->second; told.attempt < run.attempt) {
    told.attempt = run.attempt;  // it goes on behind the one before
    told.may_be_behind = true;
    told.end_told = told.over = told.left = false;
  } else if (told.attempt == run.attempt && !told.any && !told.over) {
    put(run.task, {.attempt = run.attempt});  // it was found while it ran, and is told from its start
  }
  look_soon();
}

void RemoteOutput::put(TaskId id, Told told) {
  told.serial = ++last_serial_;
  tasks_[id] = told;
}

void RemoteOutput::forget_unwanted() {
  std::erase_if(tasks_, [this](const auto& each) { return !calls_.audience.wants(each.first); });
}

void RemoteOutput::comes_here(RunId run) {
  const auto found = tasks_.find(run.task);
  if (found != tasks_.end() && found->second.attempt < run.attempt) found->second.left = true;
}

void RemoteOutput::ended(TaskId id) {
  const auto found = tasks_.find(id);
  if (found == tasks_.end()) return;
  found->second.end_told = true;
  if (found->second.over) tasks_.erase(found);
}

void RemoteOutput::begin_anew() {
  std::erase_if(tasks_, [](const auto& each) { return each.second.over; });
  find();
}

// ---- questions ----

void RemoteOutput::look_in(base::Duration wait) {
  timer_ = loop_.after(wait, [this] { look(); });
}

void RemoteOutput::look_soon() {
  soon_ = true;
  if (!asking_) look_in({});
}

void RemoteOutput::look() {
  look_in(between_questions);
  base::AllCalls calls;
  calls.make([this] {
    forget_unwanted();
    if (std::ranges::all_of(tasks_, [](const auto& each) { return each.second.over; })) return timer_.cancel();
    if (!asking_) ask();
  });
  calls.make([this] { call_finished(); });
  calls.check();
}

bool RemoteOutput::is_asked(TaskId id) const {
  const auto found = tasks_.find(id);
  return found != tasks_.end() && !found->second.over;
}

std::vector<TaskId> RemoteOutput::waited_for() const {
  std::set<TaskId> ids;
  for (const auto& [number, finish] : finishing_) ids.insert(finish.ids.begin(), finish.ids.end());
  std::erase_if(ids, [this](TaskId id) { return !is_asked(id); });
  return {ids.begin(), ids.end()};
}

// Those behind the last one, then those before.
void RemoteOutput::add_in_turn(std::vector<TaskId>& ids) const {
  const std::set<TaskId> there(ids.begin(), ids.end());
  const auto take = [&](auto from, auto to) {
    for (auto at = from; at != to && ids.size() < most_asked; ++at) {
      if (!at->second.over && !there.contains(at->first)) ids.push_back(at->first);
    }
  };
  const auto begin = tasks_.upper_bound(last_);
  take(begin, tasks_.end());
  take(tasks_.begin(), begin);
}

void RemoteOutput::ask() {
  soon_ = false;
  std::vector<TaskId> ids = waited_for();
  Question question{.waited_for = ids.size()};
  if (calls_.may_tell()) add_in_turn(ids);
  if (ids.empty()) return;
  question.number = ++questions_;
  std::vector<Argument> tasks;
  std::vector<Argument> places;
  for (const TaskId id : ids) {
    const Told& told = tasks_.at(id);
    question.asked.emplace_back(id, told.serial);
    tasks.push_back(argument_of(id));
    places.push_back(told.may_be_behind ? std::nullopt : argument_of(told.place));
  }
  calls_.ask("read_outputs_v1", {array_of(tasks), array_of(places), argument_of(most_bytes)},
             lifetime_.bind(asking_.until(
                 [this, question = std::move(question)](const Answer& answer) { take(answer, question); })));
}

// Of a task with something new there is a row for each piece, or one without. A row with an empty state says that there
// was no room for that task and those behind it.
void RemoteOutput::take(const Answer& answer, const Question& question) {
  if (!answer) return;  // the timer asks again
  const auto there = lifetime_.watch();
  const int task = answer->column("task");
  const int told = answer->column("told");
  bool is_cut = false;
  bool has_moved = false;
  std::size_t row = 0;
  bool has_more = false;
  base::AllCalls calls;
  for (std::size_t at = 0; at < question.asked.size() && there(); ++at) {
    const TaskId id = question.asked[at].first;
    const std::size_t first = row;
    while (row < answer->rows() && answer->number(row, task) == static_cast<std::int64_t>(id)) ++row;
    is_cut = first < row && answer->at(first, told) == std::string_view();
    if (is_cut) break;
    if (at >= question.waited_for) last_ = id;
    const auto found = tasks_.find(id);
    if (found == tasks_.end() || found->second.serial != question.asked[at].second) continue;
    Step step = Step::none;
    if (first < row) calls.make([&] { step = take_task(id, *answer, {first, row}); });
    has_moved = has_moved || step != Step::none;
    if (!there()) break;
    has_more = has_more || step == Step::more;
    if (step != Step::more) told_all(id, question.number);
  }
  if (!there()) return;
  const bool goes_on = soon_ || has_more || (is_cut && has_moved);
  if (!tasks_.empty()) look_in(goes_on ? base::Duration::zero() : between_questions);
  calls.make([this] { call_finished(); });
  calls.check();
}

// ---- answers ----

RemoteOutput::Step RemoteOutput::take_task(TaskId id, const Result& rows, std::pair<std::size_t, std::size_t> range) {
  Told& told = tasks_.at(id);
  const std::string_view text = rows.text(range.first, rows.column("told"));
  if (text.empty()) {  // it was removed
    tasks_.erase(id);
    return Step::some;
  }
  const boost::json::value parsed = rpc::parse_value(text);
  const boost::json::object& state = parsed.as_object();
  const OutputView view(state);
  const auto newest = static_cast<std::uint32_t>(number_in(state, "attempt"));
  told.left = told.left || calls_.is_here({id, told.attempt + 1});
  if (!told.left && calls_.is_here({id, told.attempt})) {
    tasks_.erase(id);
    return Step::some;
  }
  if (!told.left) told.attempt = std::max(told.attempt, newest);
  if (!told.place || told.may_be_behind) {  // only the state was asked for
    told.place = std::min(told.place.value_or(UINT64_MAX), view.begin_of(told.attempt));
    told.may_be_behind = false;
    return Step::more;
  }
  return take_output(id, view.read(rows, range, *told.place, piece_bytes, {}),
                     told.left ? view.end_of(told.attempt) : UINT64_MAX);
}

// Up to `end`: what is behind it is told by who runs it here.
RemoteOutput::Step RemoteOutput::take_output(TaskId id, const Queue::Output& output, std::uint64_t end) {
  Told& told = tasks_.at(id);
  const OutputPiece& piece = output.piece;
  std::string_view text = piece.bytes;
  if (piece.place_of(text.size()) > end) text = text.substr(0, end > piece.offset ? end - piece.offset : 0);
  const bool is_last = output.done || piece.next >= end;
  if (!is_last && !output.gap_follows) text = rpc::whole_characters(text);
  const std::uint64_t before = *told.place;
  // A server that took over may lack what was told.
  const bool is_new = piece.offset >= before;
  const std::uint64_t behind = std::max(before, std::min(piece.offset + text.size(), end));
  told.place = behind;
  told.any = told.any || !text.empty();
  told.over = is_last;
  if (is_last && (told.left || told.end_told)) tasks_.erase(id);
  const auto there = lifetime_.watch();
  if (is_new && !text.empty()) calls_.audience.tell(id, piece.offset, Stream::mixed, text);
  if (there() && output.done && end == UINT64_MAX) calls_.audience.tell(id, behind, Stream::mixed, {});
  if (is_last || behind == before) return is_last ? Step::some : Step::none;
  return behind < piece.total ? Step::more : Step::some;
}

// ---- what waits for it ----

void RemoteOutput::finish(const std::vector<TaskId>& ids, std::function<void()> done) {
  std::set<TaskId> told;
  std::ranges::copy_if(ids, std::inserter(told, told.end()), [this](TaskId id) { return is_asked(id); });
  if (told.empty()) return done();
  const std::uint64_t number = ++last_finish_;
  Finish& finish = finishing_[number];
  finish.limit = loop_.after(longest_finish, [this, number] {
    if (const auto late = finishing_.extract(number)) late.mapped().done();
  });
  finish.ids = std::move(told);
  finish.question = questions_ + 1;
  finish.done = std::move(done);
  look_soon();
}

void RemoteOutput::told_all(TaskId id, std::uint64_t question) {
  for (auto& [number, finish] : finishing_) {
    if (question >= finish.question) finish.ids.erase(id);
  }
}

void RemoteOutput::call_finished() {
  std::vector<std::function<void()>> over;
  for (auto at = finishing_.begin(); at != finishing_.end();) {
    std::erase_if(at->second.ids, [this](TaskId id) { return !is_asked(id); });
    const bool is_over = at->second.ids.empty();
    if (is_over) over.push_back(std::move(at->second.done));
    at = is_over ? finishing_.erase(at) : std::next(at);
  }
  base::call_all(over);
}

void RemoteOutput::stop() {
  stopped_ = true;
  timer_.cancel();
  find_timer_.cancel();
  tasks_.clear();
  call_finished();
}

}  // namespace duet::task::postgres
