#pragma once

#include <fcntl.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
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
  FakeServerTest() : program_(open(DUET_RPC_PROGRAM, O_PATH | O_CLOEXEC)) {
    signal(SIGPIPE, SIG_IGN);
    settings.guard.executable = program_.get();
    settings.environment = process::current_environment();
    settings.client_version = "1.2.3";
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
    const base::TimePoint deadline = loop.now() + patience;
    while (!done()) {
      if (loop.now() >= deadline) return false;
      loop.turn(deadline);
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

  /// Every process that the server wrote down has ended.
  bool all_are_gone() const {
    std::ifstream file(folder.file("pids"));
    bool gone = true;
    for (pid_t pid = 0; file >> pid;) gone = gone && !std::filesystem::exists("/proc/" + std::to_string(pid));
    return gone;
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
