#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "task/postgres/attempts_fixture_test.h"

// Whatever the order of starts, ends, answers, faults, beats and give-ups: every task ends once, every claim is begun
// once or put back, and in the end nothing is left here.

namespace duet::task::postgres {
namespace {

/// The rows of a queue, and what the database does with them, as far as one worker can tell.
class Rows {
 public:
  struct Row {
    enum class State { ready, taken, over };
    State state = State::ready;
    std::int64_t fence = 0;
    std::uint32_t attempts = 0;
    bool announced = false;
    bool cancelling = false;
    int ends = 0;
  };
  std::map<TaskId, Row> rows;

  void submit() { rows[rows.size() + 1] = {}; }
  bool is_over() const {
    return std::ranges::all_of(rows, [](const auto& each) { return each.second.state == Row::State::over; });
  }
  bool has(TaskId task, std::int64_t fence) const {
    const Row& row = rows.at(task);
    return row.state == Row::State::taken && row.fence == fence;
  }
  void cancel(TaskId task) {
    Row& row = rows.at(task);
    if (row.state == Row::State::taken) row.cancelling = true;
    if (row.state == Row::State::ready) end(row);
  }
  /// The worker is not heard of: what it has is queued again, and its fences are worth nothing.
  void give_up() {
    for (auto& [task, row] : rows) {
      if (row.state != Row::State::taken) continue;
      if (row.cancelling) {
        end(row);
      } else {
        row.state = Row::State::ready;
        if (!row.announced) --row.attempts;
      }
      row.fence = 0;
    }
  }
  /// `what id fence attempt` of the answer.
  using Told = std::tuple<std::string, TaskId, std::int64_t, std::int64_t>;
  std::vector<Told> report(const ReportTold& report) {
    std::vector<Told> answer;
    for (std::size_t i = 0; i < report.starts.size(); ++i) {
      const bool is_ours = has(report.starts[i], report.start_fences[i]);
      if (is_ours) rows.at(report.starts[i]).announced = true;
      answer.emplace_back(is_ours ? "start" : "fenced", report.starts[i], report.start_fences[i], 0);
    }
    for (std::size_t i = 0; i < report.ends.size(); ++i) {
      answer.push_back(take_end(report.ends[i], report.fences[i], report.flags[i]));
    }
    std::int64_t left = report.most;
    for (auto& [task, row] : rows) {
      if (left == 0 || row.state != Row::State::ready) continue;
      row = {.state = Row::State::taken, .fence = ++last_fence_, .attempts = row.attempts + 1, .ends = row.ends};
      answer.emplace_back("claim", task, row.fence, row.attempts);
      --left;
    }
    return answer;
  }
  std::string mine(bool only_cancelled) const {
    boost::json::array list;
    for (const auto& [task, row] : rows) {
      if (row.state != Row::State::taken || (only_cancelled && !row.cancelling)) continue;
      list.push_back(boost::json::object{{"task", task},
                                         {"fence", row.fence},
                                         {"attempt", row.attempts},
                                         {"started", row.announced},
                                         {"cancelling", row.cancelling}});
    }
    return rpc::to_text(list);
  }

 private:
  static void end(Row& row) {
    row.state = Row::State::over;
    ++row.ends;
  }
  static std::int64_t state_of(const Row& row) {
    return row.state == Row::State::ready ? 0 : row.state == Row::State::taken ? 1 : 2;
  }
  Told take_end(TaskId task, std::int64_t fence, std::int64_t flags) {
    Row& row = rows.at(task);
    if (row.fence != fence) return {"fenced", task, fence, 0};
    if (row.state == Row::State::taken && (!row.cancelling || (flags & 6) != 0)) {
      if (row.cancelling || (flags & End::put_back) == 0) {
        end(row);
      } else {
        row.state = Row::State::ready;
        --row.attempts;
      }
    }
    return {"end", task, fence, state_of(row)};
  }

  std::int64_t last_fence_ = 30;
};

class AttemptsStory : public AttemptsTest {
 protected:
  enum class Phase { starting, running, ended, gone };
  struct Process {
    RunId run;
    std::int64_t fence;
    Phase phase = Phase::starting;
    bool had_keeper = false;
  };

  AttemptsStory() { incarnation = membership->incarnation(); }

  void step(int what) {
    switch (what) {
      case 0:
        return database.submit();
      case 1:
      case 2:
        return answer_report();
      case 3:
        return hold_report();
      case 4:
        return lose_report(*rc::gen::arbitrary<bool>());
      case 5:
        return refuse_report();
      case 6:
        return advance(10ms);
      case 7:
        return advance(500ms);
      case 8:
        return advance(5s);
      case 9:
      case 10:
      case 11:
        return let_process_go_on(true);
      case 12:
        return hold_beat();
      case 13:
        return answer_beat_call();
      case 14:
        if (database.rows.empty()) return;
        return database.cancel(*rc::gen::inRange<TaskId>(1, database.rows.size() + 1));
      case 15:
        database.give_up();
        incarnation.clear();
        return;
      case 16:
        line.up = false;
        if (is_reporting() || held_report) lose_report(false);
        return;
      case 17:
        return drop_report(*rc::gen::arbitrary<bool>());
      default:
        return come_up();
    }
  }

  void check() {
    take_started();
    const auto live = std::ranges::count_if(processes, [](const Process& each) { return each.phase != Phase::gone; });
    RC_ASSERT(static_cast<std::size_t>(live) <= settings.max_running);
    std::set<std::int64_t> fences;
    for (const Process& each : processes) RC_ASSERT(fences.insert(each.fence).second);
    for (; acknowledged < runner.acknowledged.size(); ++acknowledged) {
      const RunId run = runner.acknowledged[acknowledged];
      for (const Process& each : processes) {
        const bool has_ended = each.phase == Phase::ended || each.phase == Phase::gone;
        RC_ASSERT(each.run != run || !has_ended || !database.has(run.task, each.fence));
      }
    }
    line.calls.erase(std::remove_if(line.calls.begin(), line.calls.end(),
                                    [](const FakeLine::Call& call) {
                                      return call.function == "number_v1" || call.function == "wake_v1" ||
                                             call.function == "sweep_v1" || call.function == "recover_v1";
                                    }),
                     line.calls.end());
  }

  /// Everything works from now on.
  void settle() {
    for (int i = 0; i < 400 && !is_settled(); ++i) {
      if (!line.up) come_up();
      membership->beat_soon();
      answer_beat_call();
      for (int report = 0; report < 5; ++report) answer_report();
      let_process_go_on(false);
      advance(1s);
      check();
    }
  }
  bool is_settled() const {
    return attempts->is_empty() && database.is_over() &&
           std::ranges::all_of(processes, [](const Process& each) { return each.phase == Phase::gone; });
  }

  Rows database;
  std::vector<Process> processes;

 private:
  static Result rows_of(const std::vector<Rows::Told>& told) {
    std::vector<Result::Row> answered;
    for (const auto& [what, task, fence, attempt] : told) {
      if (what == "claim") answered.push_back(claim(task, fence, static_cast<std::uint32_t>(attempt)));
      if (what == "fenced") answered.push_back(fenced_row(task, fence));
      if (what == "end") answered.push_back(end(task, fence, static_cast<State>(attempt)));
    }
    return rows(answered);
  }
  Answer commit(const FakeLine::Call& call) {
    if (call.arguments.at(1) != incarnation) {
      return tl::unexpected(Fault{Fault::Kind::refused, "DU001", "this worker was given up"});
    }
    return rows_of(database.report(ReportTold(call.arguments)));
  }
  /// Committed, and its answer takes its time.
  void hold_report() {
    if (held_report || !is_reporting()) return;
    FakeLine::Call call = line.take("report_v1");
    Answer answer = commit(call);
    held_report.emplace(std::move(call), std::move(answer));
  }
  void answer_report() {
    boot += 1us;  // no two answers come at the same time
    hold_report();
    if (held_report) {
      const auto [call, answer] = *std::exchange(held_report, std::nullopt);
      call.done(answer);
    }
    if (line.has("wait_v1")) line.answer("wait_v1", "");
    answer_join();
  }
  void lose_report(bool commits) {
    boot += 1us;
    if (commits) hold_report();
    if (!held_report && !is_reporting()) return;
    const FakeLine::Call call = held_report ? held_report->first : line.take("report_v1");
    held_report.reset();
    call.done(tl::unexpected(Fault{Fault::Kind::unknown, "", "cut"}));
  }
  /// Nobody hears what became of it: a fault, and not of the database.
  void drop_report(bool commits) {
    boot += 1us;
    if (commits) hold_report();
    if (!held_report && !is_reporting()) return;
    if (!held_report) line.lose("report_v1");
    held_report.reset();
  }
  void refuse_report() {
    if (is_reporting()) line.fail("report_v1", Fault::Kind::refused, "53100");
  }
  void hold_beat() {
    if (held_beat || !line.has("beat_v1")) return;
    FakeLine::Call call = line.take("beat_v1");
    const bool is_known = call.arguments.at(1) == incarnation;
    const std::string text = R"({"mine":)" + database.mine(false) + R"(,"cancels":)" + database.mine(true) +
                             R"(,"shortestLease":90000,"epoch":"e"})";
    held_beat.emplace(std::move(call),
                      is_known
                          ? Answer(Result({"beat_v1"}, {{text}}))
                          : Answer(tl::unexpected(Fault{Fault::Kind::refused, "DU001", "this worker was given up"})));
  }
  void answer_beat_call() {
    boot += 1us;
    hold_beat();
    if (!held_beat) return membership->beat_soon();
    const auto [call, answer] = *std::exchange(held_beat, std::nullopt);
    call.done(answer);
    answer_join();
  }
  void answer_join() {
    if (!line.has("attach_v1")) return;
    const FakeLine::Call call = line.take("attach_v1");
    incarnation = call.arguments.at(3).value();
    call.done(Result({"attach_v1"}, {{R"({"worker":4,"name":"one","running":)" + database.mine(false) + "}"}}));
  }
  void come_up() {
    line.up = true;
    membership->line_is_up();
    attempts->look(false);
  }
  void take_started() {
    for (; taken < runner.started.size(); ++taken) {
      const Assignment& assignment = runner.started[taken];
      for (const Process& each : processes) RC_ASSERT(each.run != assignment.run || each.phase == Phase::gone);
      processes.push_back({assignment.run, static_cast<std::int64_t>(assignment.claim->fence)});
    }
  }
  /// One of them, or all.
  void let_process_go_on(bool only_one) {
    take_started();
    std::vector<std::size_t> alive;
    for (std::size_t i = 0; i < processes.size(); ++i) {
      if (processes[i].phase != Phase::gone) alive.push_back(i);
    }
    if (alive.empty()) return;
    if (only_one) alive = {*rc::gen::elementOf(alive)};
    for (const std::size_t i : alive) go_on(i, only_one ? *rc::gen::inRange(0, 4) : 0);
  }
  void go_on(std::size_t index, int chance) {
    const RunId run = processes[index].run;
    switch (processes[index].phase) {
      case Phase::starting:
        if (chance == 1) {
          processes[index].phase = Phase::gone;
          return tell.never_began(run, "");
        }
        if (chance == 2) {
          processes[index].phase = Phase::ended;
          processes[index].had_keeper = true;
          return tell.ended(run, {.kind = Outcome::Kind::not_started, .ended_at = clock.utc(), .problem = "no"});
        }
        processes[index].phase = Phase::running;
        return started(run);
      case Phase::running:
        processes[index].phase = Phase::ended;
        processes[index].had_keeper = true;
        write_output(run, "out");
        return exited(run);
      case Phase::ended:
        processes[index].phase = Phase::gone;
        return tell.gone(run);
      case Phase::gone:
        return;
    }
  }

  std::string incarnation;
  std::optional<std::pair<FakeLine::Call, Answer>> held_report;
  std::optional<std::pair<FakeLine::Call, Answer>> held_beat;
  std::size_t taken = 0;
  std::size_t acknowledged = 0;
};

RC_GTEST_FIXTURE_PROP(AttemptsStory, EveryTaskEndsOnceAndNothingIsLeftHere, ()) {
  database.submit();
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 19));
  for (const int each : steps) {
    step(each);
    check();
  }
  settle();
  RC_ASSERT(database.is_over());
  RC_ASSERT(attempts->is_empty());
  RC_ASSERT(is_settled());
  for (const auto& [task, row] : database.rows) RC_ASSERT(row.ends == 1);
  // Whoever wrote a record is told that it may go, and nobody else is.
  std::map<RunId, int> records;
  for (const Process& each : processes) {
    if (each.had_keeper) ++records[each.run];
  }
  for (const RunId run : runner.acknowledged) --records[run];
  for (const auto& [run, left] : records) RC_ASSERT(left == 0);
}

}  // namespace
}  // namespace duet::task::postgres
