#pragma once

#include <fcntl.h>

#include <filesystem>
#include <fstream>
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

namespace duet::automation {

using namespace std::chrono_literals;

/// An engine in a project of its own, with a clock that moves when it is told to, and everything it asks for recorded.
/// Tasks are accepted at once and run when a test says so.
class EngineSetting {
 public:
  explicit EngineSetting(base::UtcTime utc = automation::utc("2026-06-01T12:00:00Z")) : clock(utc) { start(); }

  void start() {
    engine.emplace(loop, log, root.get(),
                   Engine::Actions{[this](task::Submission submission, const Engine::Submitted& done) {
                                     if (refusal) return done(*refusal);
                                     submitted.push_back(std::move(submission));
                                     done(task::TaskId{submitted.size()});
                                   },
                                   [this](std::string_view kind, const boost::json::object& params) {
                                     told.push_back(std::string(kind) + " " + rpc::to_text(params));
                                   },
                                   {[this] { return kept; },
                                    [this](std::string text, const Keepsake::Done& done) {
                                      if (store_works) kept = std::move(text);
                                      done(store_works);
                                    }}});
  }
  void configure(std::vector<Rule> rules) {
    settings = std::move(rules);
    engine->configure(settings, watch);
  }
  /// A new daemon with the same settings.
  void restart() {
    engine.reset();
    start();
    engine->configure(settings, watch);
  }

  void turn() { loop.turn(loop.now()); }
  void advance(base::Duration step) {
    turn();
    clock.advance(step);
    turn();
  }
  void settle() {
    for (int i = 0; i < 3; ++i) advance(200ms);
  }

  void write(const std::string& name) const { std::ofstream(folder.file(name), std::ios::app) << "more"; }
  void save_file(const std::string& name) {
    write(name);
    settle();
  }

  /// The task of that number, as the supervisor would tell of it.
  task::Task task(task::TaskId id, task::State state) {
    task::Task made{.id = id, .agent = "shell", .metadata = submitted.at(id - 1).metadata};
    made.progress.state = state;
    made.progress.started_at = clock.utc();
    if (state == task::State::completed) made.progress.exit_code = 0;
    return made;
  }
  void run_task(task::TaskId id, const std::string& changed_file = {}) {
    engine->task_started(task(id, task::State::running));
    if (!changed_file.empty()) write(changed_file);
    engine->task_ended(task(id, task::State::completed));
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

  transport::TemporaryFolder folder;
  base::Fd root{open(folder.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  base::VirtualClock clock;
  transport::Loop loop{clock};
  base::Log log{nullptr};

  std::vector<Rule> settings;
  WatchSettings watch;
  std::vector<task::Submission> submitted;
  std::vector<std::string> told;
  std::optional<rpc::Error> refusal;
  std::optional<std::string> kept;
  bool store_works = true;
  std::optional<Engine> engine;
};

inline Rule on_save(const std::string& id, const std::string& pattern = "") {
  return {.id = id,
          .trigger = {.source = "watch", .pattern = pattern},
          .action = {.agent = "claude", .prompt = "Fix {{payload.path}}"}};
}

}  // namespace duet::automation
