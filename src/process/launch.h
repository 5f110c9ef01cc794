#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "duet/base/fd.h"

namespace duet::process {

/// `NAME` to value; what a program sees as its environment.
using Environment = std::map<std::string, std::string, std::less<>>;

/// Of this process, now.
Environment current_environment();

/// How a program is started.
struct Launch {
  std::vector<std::string> arguments;  ///< the first one is the program: looked up in the environment's PATH if it has
                                       ///< no slash
  Environment environment = {};
  std::string directory = {};                     ///< where it starts; empty: where we are
  std::array<int, 3> standard = {-1, -1, -1};     ///< what becomes stdin, stdout and stderr; -1: /dev/null
  std::vector<std::pair<int, int>> further = {};  ///< descriptors of ours and their numbers there, from 3 up
  int executable = -1;      ///< an opened program to run instead of looking for the first argument
  bool new_session = true;  ///< else only a process group of its own
  int cgroup = -1;  ///< `cgroup.procs` of the one it begins in, opened; the process that starts it stays outside
  /// SIGKILL as soon as the thread that starts it has ended, however that ended. Not what the program starts in turn,
  /// and not a program that takes other rights (set-uid, file capabilities): the kernel forgets it then.
  bool dies_with_us = false;
};

/// A program that could not be started.
class LaunchError : public std::runtime_error {
 public:
  enum class Cause : std::uint8_t { not_found, exec_failed, directory_missing };
  LaunchError(Cause cause, int error, const std::string& text)
      : std::runtime_error(text), cause_(cause), error_(error) {}
  Cause cause() const { return cause_; }
  int error() const { return error_; }  ///< errno

 private:
  Cause cause_;
  int error_;
};

/// A child process. The descriptor becomes readable when it has ended; reap() must follow.
struct Child {
  pid_t pid = 0;
  base::Fd pidfd;
};

/// How a process ended: with a code, or by a signal (then not 0).
struct ExitStatus {
  int code = 0;
  int signal = 0;
  bool is_known = true;  ///< false: somebody else has taken the status
};

/// Starts a program with nothing of ours but what `launch` names: no descriptors, default signals, none blocked.
/// Throws LaunchError.
Child launch(const Launch& launch);

/// The same without a descriptor, which there may be none for when the program runs already. waitpid() must follow.
pid_t spawn(const Launch& launch);

/// Where `program` is found, or an empty string. Without a slash `path` (as in PATH) is searched.
std::string find_program(const std::string& program, std::string_view path);

/// Takes the status of a child that has ended; waits for one that has not. It is not known if somebody else has taken
/// it, such as the kernel where SIGCHLD is ignored.
ExitStatus reap(const Child& child);

/// `SIGKILL` for 9; `SIG64` where there is no name.
std::string signal_name(int signal);

}  // namespace duet::process
