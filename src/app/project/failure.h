#pragma once

#include <stdexcept>
#include <string>

#include "duet/base/disk_full.h"

namespace duet::app {

/// The exit codes of commands.
namespace exit_code {
inline constexpr int failed = 1;
inline constexpr int no_daemon = 3;
inline constexpr int no_answer = 4;
inline constexpr int findings = 5;  // of `lsp diagnostics --fail-on`
// Of commands that exit with a task's code.
inline constexpr int follower_failed = 123;
inline constexpr int follower_timed_out = 124;
inline constexpr int try_again = 75;  // of a daemon that comes up short of something; as in sysexits.h
}  // namespace exit_code

/// Of a daemon's start that a system call was refused to.
inline int code_of_refused_start(int error) {
  return base::is_disk_full(error) ? exit_code::try_again : exit_code::failed;
}

/// Ends a command: one line that says why and what to do, and the exit code.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& text, int code = exit_code::failed) : std::runtime_error(text), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

}  // namespace duet::app
