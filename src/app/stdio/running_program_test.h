#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/fd.h"

namespace duet::app {

/// `duet-rpc ARGUMENTS` as a child with pipes for its streams. Every wait has a deadline; a child that is still there
/// at the end is killed. Its framing is written for the tests and shares nothing with the program's.
class RunningProgram {
 public:
  static constexpr auto patience = std::chrono::seconds(60);

  /// `environment`: NAME=VALUE, beside ours.
  explicit RunningProgram(std::vector<std::string> arguments, std::vector<std::string> environment = {});
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;
  ~RunningProgram();

  void send(std::string_view body);
  void send_bytes(std::string_view bytes);
  /// Writes until nothing has been taken for so long, at most all of it; returns how much was.
  std::size_t send_what_is_taken(std::string_view bytes, std::chrono::milliseconds stalled);
  void close_input() { input_.reset(); }
  void signal(int number) const;

  /// The next frame's body; empty when there is none in time or the output has ended.
  std::string next_body();
  /// True once stderr has the text.
  bool logs(std::string_view text);

  /// The exit code, 128 + n for signal n; -1 if it is still running after `limit`. Reads stderr meanwhile.
  int exit_code_within(std::chrono::milliseconds limit);
  /// What was written to stdout and not taken by next_body; after the exit.
  std::string rest_of_output();
  const std::string& log() const { return log_; }

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  bool read_some(Deadline deadline, bool output);
  bool take_frame(std::string& body);

  pid_t pid_ = 0;
  base::Fd input_;
  base::Fd output_;
  base::Fd errors_;
  base::Fd exit_;  // a pidfd
  std::string received_;
  std::string log_;
};

}  // namespace duet::app
