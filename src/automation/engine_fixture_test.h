#pragma once

#include <fcntl.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "automation/engine.h"
#include "automation/zone_test.h"
#include "duet/base/log_sink.h"
#include "duet/rpc/value.h"
#include "duet/transport/temporary_folder_test.h"
#include "task/journal.h"
#include "task/supervisor_fixture_test.h"

namespace duet::automation {

using namespace std::chrono_literals;

/// An engine in a project of its own, with a clock that moves when it is told to, on a real store and a real
/// supervisor. Tasks run when a test says so.
class EngineSetting {
 public:
  explicit EngineSetting(base::UtcTime utc = automation::utc("2026-06-01T12:00:00Z")) : clock(utc) {
    tasks.default_agent = "claude";
    tasks.max_running = 100;
    start();
  }

  void start() {
    auto place = std::make_unique<task::StoreFolder>(
        state.get(), task::StoreFolder::Options{.fault = [this](task::StoreVfs::Step step, std::string_view) {
          return step == task::StoreVfs::Step::write ? write_fault.load() : SQLITE_OK;
        }});
    store.emplace(loop, std::move(place), task::Store::Tell(),
                  task::Committer::Options{.may_use_thread = false, .patience = {}});
    journal.emplace(*store);
    supervisor.emplace(loop, log, *store, tasks,
                       task::Context{.tasks = state.get(), .project = [] { return std::string("/project"); }},
                       task::OutputFollower::Audience{.wants = [](task::TaskId) { return false; }, .tell = {}});
    journal->add_reader([this](const task::Event& event) { record(event); });
    journal->add_reader([this](const task::Event& event) { supervisor->take(event); });
    journal->add_reader([this](const task::Event& event) { engine->take(event); });
    runner.tasks = state.get();
    supervisor->begin(runner, {});
    engine.emplace(loop, log, root.get(), *store, *supervisor);
  }
  /// The first time it begins, too.
  void configure(std::vector<Rule> rules) {
    settings = std::move(rules);
    configure();
    if (!std::exchange(begun, true)) engine->begin(running());
    turn();
  }
  void stop() {
    engine.reset();
    supervisor.reset();
    journal.reset();
    store.reset();
    begun = false;
  }
  /// A new daemon with the same settings.
  void restart() {
    stop();
    start();
    configure(settings);
  }
  /// The same when the last one was killed: what it had not written yet is not there.
  void kill_and_restart() {
    write_fault = SQLITE_IOERR;
    stop();
    write_fault = SQLITE_OK;
    start();
    configure(settings);
  }

  void turn() {
    for (int i = 0; i < 8; ++i) loop.turn(loop.now());
  }
  void advance(base::Duration step) {
    turn();
    clock.advance(step);
    turn();
  }
  void wait_for_store() {
    for (int i = 0; i < 3; ++i) advance(200ms);
  }

  void write(const std::string& name) const { std::ofstream(folder.file(name), std::ios::app) << "more"; }
  void save_file(const std::string& name) {
    write(name);
    wait_for_store();
  }

  /// What was asked for and taken, in the order of the tasks' ids.
  std::vector<task::Submission> submitted() {
    return store
        ->read([](task::StoreReader& reader) {
          std::vector<task::Submission> found;
          for (task::TaskId id = 1; id <= reader.newest(); ++id) {
            const std::string body = reader.body(id);
            if (!body.empty()) found.push_back(task::from_body(body));
          }
          return found;
        })
        .value();
  }
  /// Somebody's task.
  void submit(const std::string& prompt = "true") {
    supervisor->submit({.prompt = prompt, .agent = "shell"}, [](const auto& /*accepted*/) {});
    turn();
  }
  void start_task(task::TaskId id) {
    supervisor->keeper_events().started({id, 1}, {.pid = 100, .at = clock.utc()});
    turn();
  }
  void end_task(task::TaskId id, int code = 0) {
    task::Outcome outcome{.kind = task::Outcome::Kind::exited, .code = code};
    outcome.started = task::Started{.pid = 100, .at = clock.utc()};
    outcome.ended_at = clock.utc();
    supervisor->keeper_events().ended({id, 1}, outcome);
    supervisor->keeper_events().gone({id, 1});
    turn();
  }
  void run_task(task::TaskId id, const std::string& changed_file = {}, int code = 0) {
    start_task(id);
    if (!changed_file.empty()) write(changed_file);
    end_task(id, code);
  }
  /// Whether the queue takes anything.
  void set_room(bool room) {
    tasks.queue_capacity = room ? 100 : 0;
    supervisor->change_settings(tasks);
  }

  /// `rule fired`, `rule held cooldown`, newest first; reasons up to a colon.
  std::vector<std::string> recent() const {
    std::vector<std::string> lines;
    const boost::json::object status = engine->status();
    for (const boost::json::value& value : status.at("recent").as_array()) {
      const boost::json::object& entry = value.as_object();
      std::string line =
          std::string(entry.at("ruleId").as_string()) + " " + std::string(entry.at("outcome").as_string());
      if (const boost::json::value* reason = entry.if_contains("reason")) {
        line += " " + std::string(reason->as_string());
        line.resize(std::min(line.find(':'), line.size()));
      }
      lines.push_back(std::move(line));
    }
    return lines;
  }
  boost::json::object newest() const { return engine->status().at("recent").as_array().at(0).as_object(); }
  std::optional<std::string> recall(const std::string& name) {
    return store->read([&](task::StoreReader& reader) { return reader.recall(name); }).value();
  }
  /// How many firings are in the store.
  std::size_t kept_firings() {
    return store
        ->read([](task::StoreReader& reader) {
          std::size_t kept = 0;
          reader.each_remembered("firing/", [&](std::string_view, std::string_view) { ++kept; });
          return kept;
        })
        .value();
  }
  void remember(const std::string& name, const std::string& value) {
    store->write({.apply = [=](task::StoreWriter& writer) { writer.remember(name, value); }});
    turn();
  }

  transport::TemporaryFolder folder;
  transport::TemporaryFolder state_folder;
  base::Fd root{open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  base::Fd state{open(state_folder.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  base::VirtualClock clock;
  transport::Loop loop{clock};
  base::Log log{nullptr};
  std::atomic<int> write_fault = SQLITE_OK;

  std::vector<Rule> settings;
  WatchSettings watch;
  task::TaskSettings tasks;
  std::vector<std::string> told;                     ///< by the engine
  std::function<void(const task::Event&)> on_event;  ///< before the engine hears of it
  bool begun = false;
  task::FakeRunner runner;
  std::optional<task::Store> store;
  std::optional<task::Journal> journal;
  std::optional<task::Supervisor> supervisor;
  std::optional<Engine> engine;

 private:
  void configure() { engine->configure(Engine::prepare(settings, watch).value()); }

  std::vector<task::Task> running() {
    std::vector<task::Task> tasks_now;
    for (const task::TaskId id : supervisor->running()) tasks_now.push_back(supervisor->find(id).value());
    return tasks_now;
  }
  void record(const task::Event& event) {
    if (on_event) on_event(event);
    if (event.kind != "automationFired" && event.kind != "notice") return;
    boost::json::object params = rpc::parse_value(event.params).as_object();
    params.erase("seq");
    told.push_back(event.kind + " " + rpc::to_text(params));
  }
};

inline Rule on_save(const std::string& id, const std::string& pattern = "") {
  return {.id = id,
          .trigger = {.source = "watch", .pattern = pattern},
          .action = {.agent = "claude", .prompt = "Fix {{payload.path}}"}};
}

}  // namespace duet::automation
