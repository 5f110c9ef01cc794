#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "duet/base/log.h"
#include "duet/base/log_sink.h"
#include "duet/transport/loop.h"
#include "duet/transport/temporary_folder_test.h"
#include "process/process_tree.h"
#include "task/keeper.h"
#include "task/output.h"
#include "task/run_record.h"
#include "task/system_keeper_world.h"

namespace duet::task {

/// What was told of a run.
struct Story {
  std::optional<Started> started;
  std::optional<Outcome> outcome;
  std::uint64_t output = 0;
  int terminated = 0;
  bool gone = false;
  bool never_began = false;
  std::string why;  // it never began

  bool is_over() const { return gone || never_began; }
};

/// Keepers over a folder of their own, and all they tell. Outcomes are acknowledged at once unless a test wants
/// otherwise.
class KeeperTest : public testing::Test {
 protected:
  static constexpr std::chrono::seconds patience{90};

  KeeperTest() : executable_(open(DUET_RPC_PROGRAM, O_RDONLY | O_CLOEXEC)) { use_folder(folder_.file("tasks")); }

  // A keeper removes its socket when it ends, which would disturb who removes the folder.
  void TearDown() override {
    stop_daemon();
    for (const pid_t pid : living()) kill(pid, SIGKILL);  // what a failed test has left
    EXPECT_TRUE(turn_until([&] {
      const auto names = files();
      return std::none_of(names.begin(), names.end(), is_contact_name);
    }));
  }

  void use_folder(const std::string& path) {
    std::filesystem::create_directories(path);
    tasks_.reset(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    settings_.grace = std::chrono::milliseconds(300);
  }

  KeeperEvents events() {
    return {.started =
                [this](RunId run, const Started& started) {
                  EXPECT_FALSE(stories_[run].started || stories_[run].outcome);
                  stories_[run].started = started;
                },
            .output = [this](RunId run, std::uint64_t total) { stories_[run].output = total; },
            .terminated = [this](RunId run) { ++stories_[run].terminated; },
            .ended =
                [this](RunId run, const Outcome& outcome) {
                  EXPECT_FALSE(stories_[run].outcome || stories_[run].gone);
                  stories_[run].outcome = outcome;
                  if (acknowledge_at_once_) keepers().acknowledge(run);
                },
            .gone =
                [this](RunId run) {
                  EXPECT_TRUE(stories_[run].outcome);
                  stories_[run].gone = true;
                },
            .never_began =
                [this](RunId run, const std::string& why) {
                  EXPECT_FALSE(stories_[run].outcome);
                  stories_[run].never_began = true;
                  stories_[run].why = why;
                }};
  }

  Keepers& keepers() {
    if (!world_) world_ = std::make_unique<SystemKeeperWorld>(loop_, tasks_.get(), executable_.get(), spare_time_);
    if (!keepers_) keepers_ = std::make_unique<Keepers>(loop_, log_, *world_, settings_, events());
    return *keepers_;
  }
  void stop_daemon() {
    keepers_.reset();
    world_.reset();
  }
  /// However slow the machine is, keepers without a run are there when they are wanted again.
  void keep_spares() {
    settings_.farewell = std::chrono::hours(2);
    spare_time_ = std::chrono::hours(1);
  }
  /// As if the daemon had gone without a word, and another one had come.
  void restart_daemon() {
    stop_daemon();
    stories_.clear();
  }

  Assignment shell(const std::string& script, std::uint64_t task = 1) const {
    Assignment assignment;
    assignment.run = {task, 1};
    assignment.arguments = {"/bin/sh", "-c", script};
    assignment.environment = process::current_environment();
    assignment.environment["DUET_KEEPER_TEST"] = mark_;
    assignment.directory = folder_.path();
    return assignment;
  }

  template <typename Done>
  testing::AssertionResult turn_until(Done done) {
    const auto deadline = loop_.now() + patience;
    while (!done()) {
      if (loop_.now() >= deadline) return testing::AssertionFailure() << "it takes too long";
      loop_.turn(std::min(deadline, loop_.now() + std::chrono::milliseconds(20)));
    }
    return testing::AssertionSuccess();
  }

  Story& story(RunId run) { return stories_[run]; }
  testing::AssertionResult finish(RunId run) {
    return turn_until([&] { return stories_[run].is_over(); });
  }
  Story run(const Assignment& assignment) {
    stories_.erase(assignment.run);
    keepers().start(assignment);
    EXPECT_TRUE(finish(assignment.run));
    return stories_[assignment.run];
  }

  std::string output_of(RunId run) const { return read_output(tasks_.get(), run, 0, std::size_t{1} << 30).bytes; }
  std::string file_text(const std::string& name) const {
    std::ifstream file(folder_.file(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool has_file(const std::string& name) const { return std::filesystem::exists(folder_.file(name)); }
  testing::AssertionResult await_file(const std::string& name) {
    return turn_until([&] { return has_file(name); });
  }

  /// Processes that the assignments of this test have started, directly or not.
  std::vector<pid_t> living() const {
    std::vector<pid_t> found;
    for (const process::ProcessEntry& entry : process::all_processes()) {
      if (!entry.is_zombie() && process::has_in_environment(entry.pid, "DUET_KEEPER_TEST=" + mark_))
        found.push_back(entry.pid);
    }
    return found;
  }
  static bool is_alive(pid_t pid) {
    const auto entry = process::read_process(pid);
    return entry && !entry->is_zombie();
  }
  pid_t keeper_of(RunId run) {
    const auto entry = process::read_process(stories_[run].started->pid);
    return entry ? entry->parent : 0;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (std::string& name : names_in(tasks_.get())) {
      if (name != "." && name != "..") names.push_back(std::move(name));
    }
    return names;
  }

  transport::TemporaryFolder folder_;
  std::string mark_ = random_mark();
  base::Fd executable_;
  base::Fd tasks_;
  transport::Loop loop_;
  base::Log log_{nullptr};
  KeeperSettings settings_;
  std::chrono::milliseconds spare_time_ = Nursery::usual_spare_time;
  bool acknowledge_at_once_ = true;
  std::map<RunId, Story> stories_;
  std::unique_ptr<SystemKeeperWorld> world_;
  std::unique_ptr<Keepers> keepers_;
};

}  // namespace duet::task
