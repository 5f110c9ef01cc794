#include "app/daemon/running_daemon.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "app/failure.h"

namespace duet::app {
namespace {

// How long a lock may be held by nobody that can be named: its holder has just taken it, or is about to end.
constexpr std::chrono::seconds patience{2};
constexpr std::chrono::milliseconds between_tries{10};

}  // namespace

std::optional<pid_t> lock_holder(const StateFolder& folder) {
  struct stat status {};
  if (fstatat(folder.descriptor(), lock_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  // 3: FLOCK  ADVISORY  WRITE 4711 08:01:131090 0 EOF
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, type, advice, access, place;
    pid_t pid = 0;
    if (!(words >> number >> type >> advice >> access >> pid >> place) || type != "FLOCK" || pid <= 0) continue;
    if (place.substr(place.rfind(':') + 1) == std::to_string(status.st_ino)) return pid;
  }
  return std::nullopt;
}

DaemonLock take_lock_or_fail(const StateFolder& folder) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (std::optional<DaemonLock> lock = DaemonLock::take(folder)) return std::move(*lock);
    std::optional<pid_t> pid = lock_holder(folder);
    const bool late = std::chrono::steady_clock::now() >= deadline;
    if (!pid && late) pid = written_pid(folder);
    if (pid) throw Failure("already running, pid " + std::to_string(*pid));
    if (late) throw Failure("already running: another process holds the lock of the project's daemon");
    std::this_thread::sleep_for(between_tries);
  }
}

}  // namespace duet::app
