#pragma once

#include <fcntl.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "task/postgres/member_fixture_test.h"
#include "task/postgres/postgres_queue.h"
#include "task/postgres/records.h"
#include "task/supervisor_fixture_test.h"

namespace duet::task::postgres {

/// A queue with a real store of its own, whose database is the test.
class PostgresQueueTest : public MemberTest {
 protected:
  PostgresQueueTest() {
    runner.tasks = tasks.get();
    auto place = std::make_unique<StoreFolder>(directory.get(), StoreFolder::Options{});
    store.emplace(
        loop, std::move(place), [](const Store::Health&) {}, Committer::Options{.patience = {}});
    ClusterSettings cluster;
    cluster.store = "postgresql://here";
    cluster.project = "site";
    cluster.name = "one";
    PostgresQueue::Options options{.tasks = tasks.get(), .project = [] { return std::string("/project"); }};
    options.environment = {{"PATH", "/bin"}};
    options.place = "here";
    options.version = "1";
    options.boottime = [this] { return boot; };
    options.read_memory = [this] { return own_memory; };
    options.write_memory = [this](const std::string& text) {
      own_memory = text;
      return true;
    };
    options.extend = [](base::Duration, base::Duration) {};
    PostgresQueue::Tells tells;
    tells.output = {.wants = [this](TaskId id) { return wanted.contains(id); },
                    .tell =
                        [this](TaskId id, std::uint64_t offset, Stream, std::string_view text) {
                          told.push_back(to_text(id) + ' ' + std::to_string(offset) + ' ' + std::string(text));
                        }};
    tells.problem = [](const std::string&) {};
    tells.journal_began_anew = [] {};
    TaskSettings settings;
    settings.max_running = 2;
    settings.default_agent = "shell";
    queue.emplace(loop, log, line, *store, journal, settings, cluster, options, tells);
    queue->begin(runner, {});
    tell = queue->keeper_events();
    queue->start();
  }

  void greet_queue(const std::string& answer) {
    line.events.greet(
        Line::Way::work,
        [this](std::string_view function, std::vector<Argument> arguments, Line::Done done) {
          line.call(Line::Way::work, function, std::move(arguments), std::move(done));
        },
        [](const std::optional<std::string>& why) { EXPECT_FALSE(why); });
    line.answer("hello_v1", answer);
    line.events.up();
  }
  void fail_over_queue() {
    line.calls.clear();
    greet_queue(hello(2));
  }
  void join_queue() {
    greet_queue(hello());
    line.answer("attach_v1", R"({"worker":4,"name":"one","took_over":false,"running":[]})");
    line.answer("beat_v1", beat_text());
    turn();
    if (line.has("report_v1")) line.take("report_v1").done(Result({"what"}, {}));
    if (line.has("wait_v1")) line.answer("wait_v1", "");
    if (line.has("report_v1")) line.take("report_v1").done(Result({"what"}, {}));
    line.calls.clear();
  }
  static Result task_row(TaskId id, State state, const std::string& prompt = "p") {
    return {{"id", "state", "prompt"},
            {{std::to_string(id), std::to_string(static_cast<int>(state)), prompt_text(prompt)}}};
  }
  static std::string shown(const tl::expected<Task, rpc::Error>& task) {
    return task ? to_text(task->id) + ' ' + std::string(name_of(task->progress.state))
                : std::to_string(task.error().code());
  }
  Queue::FoundTask note() {
    return [this](const tl::expected<Task, rpc::Error>& task) { answers.push_back(shown(task)); };
  }
  void wait_for_store() {
    const auto deadline = std::chrono::steady_clock::now() + transport::test_patience;
    auto idle = std::make_shared<bool>(false);
    store->when_idle([idle] { *idle = true; });
    while (!*idle && std::chrono::steady_clock::now() < deadline) loop.turn(loop.now() + 1s);
    EXPECT_TRUE(*idle);
  }
  /// Claims task 7 with the fence 31.
  void have_seven(int attempt = 1) {
    line.events.notified("duet_w4", "task");
    line.answer("wait_v1", "");
    line.take("report_v1")
        .done(Result({"what", "id", "fence", "attempt", "agent", "grp", "body"},
                     {{"claim", "7", "31", std::to_string(attempt), "shell", "default", to_body({.prompt = "true"})}}));
    line.calls.clear();
  }
  void answer_end() {
    line.take("report_v1").done(Result({"what", "id", "fence", "attempt"}, {{"end", "7", "31", "2"}}));
  }
  /// It runs, and ends, and the database is told.
  void end_seven() {
    have_seven();
    tell.started({7, 1}, {.pid = 100, .at = clock.utc()});
    tell.ended({7, 1}, {.kind = Outcome::Kind::exited, .started = Started{100, clock.utc()}, .ended_at = clock.utc()});
    tell.gone({7, 1});
    answer_end();
  }
  /// What the database is asked on the way out, until it is left.
  void see_off() {
    for (int i = 0; i < 3; ++i) line.answer("read_stats_v1", "{}");
    line.answer("leave_v1", R"({"left":true,"ready":[]})");
    wait_for_store();
  }

  transport::TemporaryFolder folder;
  base::Fd directory = open_folder(folder.path());
  base::Fd tasks = [this] {
    mkdirat(directory.get(), "tasks", 0700);
    return base::Fd(openat(directory.get(), "tasks", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }();
  std::string own_memory;
  FakeRunner runner;
  KeeperEvents tell;
  std::vector<std::string> answers;
  std::set<TaskId> wanted;        // their output
  std::vector<std::string> told;  // output, and events
  std::optional<Store> store;
  Journal journal{Journal::Limits{}};
  std::optional<PostgresQueue> queue;
};

}  // namespace duet::task::postgres
