#pragma once

#include <fcntl.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/object.hpp>
#include <gtest/gtest.h>

#include "duet/base/log_sink.h"
#include "duet/rpc/value.h"
#include "task/journal.h"
#include "task/output.h"
#include "task/run_record.h"
#include "task/store_fixture_test.h"
#include "task/supervisor.h"

namespace duet::task {

/// A runner that runs nothing: the test tells what becomes of a run.
class FakeRunner final : public Runner {
 public:
  void start(const Assignment& assignment) override { started.push_back(assignment); }
  void adopt(RunId run) override { adopted.push_back(run); }
  void cancel(RunId run) override { cancelled.push_back(run); }
  void follow(RunId run, std::uint64_t offset) override { followed.emplace_back(run, offset); }
  void acknowledge(RunId run) override { acknowledged.push_back(run); }
  std::optional<RunId> run_of_keeper(pid_t /*keeper*/) override { return std::nullopt; }
  std::optional<LeftRun> left_by(RunId run) override {
    const auto found = left.find(run);
    return found == left.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<RunId> outputs() override { return recorded_outputs(tasks); }
  void remove_output(RunId run) override { task::remove_output(tasks, run); }

  int tasks = -1;
  std::map<RunId, LeftRun> left;

  std::vector<Assignment> started;
  std::vector<RunId> adopted;
  std::vector<RunId> cancelled;
  std::vector<std::pair<RunId, std::uint64_t>> followed;
  std::vector<RunId> acknowledged;
};

/// A supervisor with a real store, a fake runner, and a clock that stands still.
class SupervisorTest : public testing::Test {
 protected:
  using Strings = std::vector<std::string>;

  SupervisorTest() {
    settings.agents["cat"] = {.command = {"cat"}, .prompt_on_stdin = true};
    settings.default_agent = "shell";
    settings.max_running = 2;
  }

  void SetUp() override { begin(); }

  /// A new daemon, in the folder of the one before.
  void begin(const std::vector<RunId>& recorded = {}) {
    supervisor.reset();
    journal.reset();
    store.reset();
    runner = {};
    directory = open_folder(folder.path());
    mkdirat(directory.get(), output_folder, 0700);
    tasks = base::Fd(openat(directory.get(), output_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto place = std::make_unique<StoreFolder>(
        directory.get(), StoreFolder::Options{.fault = [this](StoreVfs::Step step, std::string_view) {
          if (step == StoreVfs::Step::write) return write_fault.load();
          ++syncs;
          return SQLITE_OK;
        }});
    store.emplace(
        loop, std::move(place), [this](const Store::Health&) { supervisor->store_recovered(); },
        Committer::Options{.patience = {}});
    journal.emplace(*store);
    supervisor.emplace(
        loop, log, *store, settings,
        Context{.tasks = tasks.get(),
                .project = [] { return std::string("/project"); },
                .environment = {{"PATH", "/bin"}},
                .provide_for = provide_for},
        OutputFollower::Audience{.wants = [this](TaskId) { return output_wanted; },
                                 .tell = [this](TaskId, std::uint64_t offset, Stream,
                                                std::string_view text) { told.emplace_back(offset, text); }});
    journal->add_reader([this](const Event& event) {
      last_event = rpc::parse_value(event.params).as_object();
      events.push_back(event.kind + ' ' + to_text(event.task));
      if (on_event) on_event(event);
    });
    journal->add_reader([this](const Event& event) { supervisor->take(event); });
    runner.tasks = tasks.get();
    tell = supervisor->keeper_events();
    if (before_begin) before_begin();
    supervisor->begin(runner, recorded);
    wait_for_store();
  }

  /// Until nothing happens any more.
  void wait_for_store() {
    for (int i = 0; i < 6; ++i) {
      auto acknowledged = std::make_shared<bool>(false);
      store->when_idle([acknowledged] { *acknowledged = true; });
      while (!*acknowledged) loop.turn(loop.now() + std::chrono::seconds(1));
      loop.turn(loop.now());
    }
  }
  /// While the store is in trouble it is acknowledged at once, but not yet done.
  template <typename Done>
  bool turn_until(Done done) {
    const auto deadline = std::chrono::steady_clock::now() + transport::test_patience;
    while (!done() && std::chrono::steady_clock::now() < deadline) loop.turn(loop.now() + std::chrono::seconds(1));
    return done();
  }
  void advance(base::Duration time) {
    clock.advance(time);
    wait_for_store();
  }

  /// The id, or the code with which it was refused.
  std::int64_t submit(Submission submission) {
    std::int64_t answer = 0;
    supervisor->submit(std::move(submission), [&](const tl::expected<Accepted, rpc::Error>& accepted) {
      answer = accepted ? static_cast<std::int64_t>(accepted->id) : accepted.error().code();
      if (!accepted) last_error = accepted.error().data();
    });
    EXPECT_TRUE(turn_until([&] { return answer != 0; }));
    wait_for_store();
    return answer;
  }
  std::int64_t submit(const char* prompt = "true") { return submit(Submission{.prompt = prompt}); }

  /// 1 when it is certain, 0 while it is not, else the code of the refusal.
  std::shared_ptr<int> cancel(TaskId id) {
    auto answer = std::make_shared<int>(0);
    supervisor->cancel(id, [answer](const tl::expected<void, rpc::Error>& cancelled) {
      *answer = cancelled ? 1 : cancelled.error().code();
    });
    wait_for_store();
    return answer;
  }

  void run_started(RunId run) {
    tell.started(run, {.pid = 100, .at = clock.utc()});
    wait_for_store();
  }
  void run_ends(RunId run, Outcome outcome, bool with_tree = true) {
    outcome.started = Started{.pid = 100, .at = clock.utc()};
    outcome.ended_at = clock.utc();
    tell.ended(run, outcome);
    if (with_tree) tell.gone(run);
    wait_for_store();
  }
  void run_exits(RunId run, int code, bool with_tree = true) {
    run_ends(run, {.kind = Outcome::Kind::exited, .code = code, .result = "out"}, with_tree);
  }

  Task task(TaskId id) { return supervisor->find(id).value(); }
  State state(TaskId id) { return task(id).progress.state; }
  std::optional<Reason> reason(TaskId id) {
    const auto error = task(id).progress.error;
    return error ? std::optional(error->reason) : std::nullopt;
  }
  Strings started() const {
    Strings ids;
    for (const Assignment& assignment : runner.started) {
      ids.push_back(std::to_string(assignment.run.task) + '.' + std::to_string(assignment.run.attempt));
    }
    return ids;
  }
  Strings take_events() { return std::exchange(events, {}); }

  transport::TemporaryFolder folder;
  base::VirtualClock clock{base::UtcTime(std::chrono::seconds(1'800'000'000))};
  transport::Loop loop{clock};
  base::Log log{nullptr};
  TaskSettings settings;
  Agents::ProvideFor provide_for;
  base::Fd directory;
  base::Fd tasks;
  std::atomic<int> write_fault = SQLITE_OK;
  std::atomic<int> syncs = 0;
  FakeRunner runner;
  Strings events;
  boost::json::object last_event;
  std::string last_error;
  bool output_wanted = false;
  std::vector<std::pair<std::uint64_t, std::string>> told;
  std::function<void(const Event&)> on_event;
  std::function<void()> before_begin;  // the store is open
  std::optional<Store> store;
  std::optional<Journal> journal;
  std::optional<Supervisor> supervisor;
  KeeperEvents tell;
};

}  // namespace duet::task
