#pragma once

#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <boost/json/value.hpp>
#include <gtest/gtest.h>

#include "bridge/session.h"
#include "duet/base/log_tape_test.h"
#include "duet/rpc/value.h"
#include "duet/transport/await_test.h"
#include "duet/transport/loop.h"
#include "duet/transport/temporary_folder_test.h"

namespace duet::bridge {

/// The scripted server of tests/fakes, with a loop and a folder of its own.
class FakeServerTest : public testing::Test {
 protected:
  explicit FakeServerTest(base::Clock& clock = base::system_clock())
      : loop(clock), program_(open(DUET_RPC_PROGRAM, O_PATH | O_CLOEXEC)) {
    signal(SIGPIPE, SIG_IGN);
    settings.guard.executable = program_.get();
    settings.environment = process::current_environment();
    settings.client_version = "1.2.3";
    settings.patience.closing = std::chrono::hours(1);
  }

  Definition fake(std::vector<std::string> options = {}, const std::string& name = "fake") const {
    Definition definition{.name = name, .command = {"python3", DUET_SOURCE_DIR "/tests/fakes/language_server.py"}};
    definition.files = {"*.txt"};
    definition.command.insert(definition.command.end(), options.begin(), options.end());
    definition.command.insert(definition.command.end(), {"--tape", tape(), "--pids", folder.file("pids")});
    return definition;
  }

  std::string tape() const { return folder.file("tape"); }

  /// Turns the loop until `done`; false if that takes too long.
  bool turn_until(const std::function<bool()>& done, std::chrono::milliseconds patience = transport::test_patience) {
    const base::TimePoint deadline = base::system_clock().now() + patience;
    while (!done()) {
      const base::Duration left = deadline - base::system_clock().now();
      if (left <= base::Duration::zero()) return false;
      loop.turn(std::min<base::Duration>(left, std::chrono::milliseconds(20)));
    }
    return true;
  }

  /// What the server was sent, in order.
  std::vector<boost::json::object> sent() const {
    std::vector<boost::json::object> messages;
    std::ifstream file(tape());
    for (std::string line; std::getline(file, line);) messages.push_back(rpc::parse_value(line).as_object());
    return messages;
  }

  std::vector<std::string> sent_methods() const {
    std::vector<std::string> methods;
    for (const boost::json::object& message : sent()) {
      const boost::json::value* method = message.if_contains("method");
      methods.emplace_back(method != nullptr ? method->as_string().c_str() : "(answer)");
    }
    return methods;
  }

  /// Of the processes that the server wrote down, those that have ended, and all.
  std::pair<int, int> gone_of_all() const {
    std::ifstream file(folder.file("pids"));
    std::pair<int, int> count;
    for (pid_t pid = 0; file >> pid; ++count.second) {
      if (!std::filesystem::exists("/proc/" + std::to_string(pid))) ++count.first;
    }
    return count;
  }
  bool all_are_gone() const {
    const auto [gone, all] = gone_of_all();
    return gone == all;
  }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder.file(name)) << text;
    return folder.file(name);
  }

  transport::TemporaryFolder folder;
  transport::Loop loop;
  base::LogTape log;
  ServerSettings settings;

 private:
  base::Fd program_;
};

}  // namespace duet::bridge
