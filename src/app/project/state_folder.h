#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "app/project/failure.h"
#include "app/project/project.h"
#include "duet/base/fd.h"

namespace duet::app {

/// Where a daemon's state is kept.
enum class StatePlace : std::uint8_t {
  project,  ///< `.aiwg/daemon` in the project
  user,     ///< below the user's state folder, by the project's path
};

/// `.aiwg/daemon` of a project, or its place below the user's state folder, where the daemon keeps everything: mode
/// 0700, ours, with files of mode 0600.
///
/// All access goes through its descriptor, so the project's path may be of any length and the project may be moved.
class StateFolder {
 public:
  /// For clients: only if it is there. Throws Failure if it is not ours to look into.
  static std::optional<StateFolder> find(const Project& project, StatePlace place = StatePlace::project);
  /// For the daemon: made if it is not there. Throws Failure.
  static StateFolder make(const Project& project, StatePlace place = StatePlace::project);

  int descriptor() const { return folder_.get(); }
  /// Its path if it is not in the project; empty if it is.
  const std::string& elsewhere() const { return elsewhere_; }
  /// For people.
  std::string shown() const { return elsewhere_.empty() ? ".aiwg/daemon" : elsewhere_; }
  /// A path for calls that know no descriptors: good as long as this object lives, in this process.
  std::string path_of(const std::string& name) const;
  /// The content of a small file, or of one with up to `most` bytes; empty if there is none.
  std::string read_small(const std::string& name, std::size_t most = 4096) const;
  /// Replaces a small file. Throws Failure.
  void write_small(const std::string& name, std::string_view text) const;
  void remove(const std::string& name) const;
  /// What to say when one of its files cannot be opened.
  Failure unusable(const std::string& name, int error) const;

 private:
  static std::optional<StateFolder> find_of_user(const Project& project);
  static StateFolder make_of_user(const Project& project);
  StateFolder(base::Fd folder, std::string root, std::string elsewhere = {})
      : folder_(std::move(folder)), root_(std::move(root)), elsewhere_(std::move(elsewhere)) {}

  base::Fd folder_;
  std::string root_;  // of the project, for messages
  std::string elsewhere_;
};

/// The lock that makes a daemon the only one of its project, for as long as the process lives. The file is never
/// removed by us: it, and not the PID file, is the truth.
class DaemonLock {
 public:
  /// Nothing: somebody else holds it. Throws Failure where the file system has no locks.
  static std::optional<DaemonLock> take(const StateFolder& folder);
  /// Somebody has it. To find that out it is held for an instant, if nobody has: take() may have to try again.
  static bool is_held(const StateFolder& folder);

  /// Keeps it for the program that this process is about to go on as, so that nobody comes between: take() finds it.
  void hand_on() const;
  /// The lock file, and with it the state folder, is still where the project's daemon is looked for.
  bool is_in_place(const Project& project) const;

 private:
  DaemonLock(base::Fd file, std::string elsewhere) : file_(std::move(file)), elsewhere_(std::move(elsewhere)) {}

  base::Fd file_;
  std::string elsewhere_;  // the state folder, if that is not in the project
};

/// The process in `daemon.pid`, if that is a number.
std::optional<pid_t> written_pid(const StateFolder& folder);

inline constexpr const char* socket_name = "daemon.sock";
inline constexpr const char* lock_name = "daemon.lock";
inline constexpr const char* pid_name = "daemon.pid";
inline constexpr const char* log_name = "daemon.log";
inline constexpr const char* version_name = "daemon.version";
inline constexpr const char* last_words_name = "daemon.last";
inline constexpr const char* settings_fault_name = "daemon.settings";  // why settings were not taken over; else none
inline constexpr const char* worker_file_name = "daemon.worker";  // its name in a shared queue; none: it shares none
inline constexpr const char* metrics_name = "metrics";
inline constexpr const char* state_path = ".aiwg/daemon";

}  // namespace duet::app
