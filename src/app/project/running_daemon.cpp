#include "app/project/running_daemon.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "app/project/failure.h"
#include "duet/peer/client.h"

namespace duet::app {
namespace {

constexpr std::chrono::seconds patience{2};
constexpr std::chrono::milliseconds patience_for_answer{500};
constexpr std::chrono::milliseconds between_tries{10};

// By its own word. A process that was killed may hold the lock for some milliseconds more, but it does not answer.
std::optional<pid_t> answering_daemon(const StateFolder& folder) {
  try {
    peer::Client client;
    client.connect(folder.path_of(socket_name), patience_for_answer);
    return client.call("daemon.status", nullptr, patience_for_answer).at("pid").to_number<pid_t>();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// Who has a lock on a file of this number, on whatever device: the one that is shown is not always the one of stat().
std::vector<pid_t> lock_holders(ino_t inode) {
  std::vector<pid_t> holders;
  // 3: FLOCK  ADVISORY  WRITE 4711 08:01:131090 0 EOF
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, type, advice, access, place;
    pid_t pid = 0;
    if (!(words >> number >> type >> advice >> access >> pid >> place) || type != "FLOCK" || pid <= 0) continue;
    if (place.substr(place.rfind(':') + 1) == std::to_string(inode)) holders.push_back(pid);
  }
  return holders;
}

StatePlace other_place(StatePlace place) {
  return place == StatePlace::project ? StatePlace::user : StatePlace::project;
}

}  // namespace

std::optional<pid_t> lock_holder(const StateFolder& folder) {
  struct stat status {};
  if (fstatat(folder.descriptor(), lock_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  const std::vector<pid_t> holders = lock_holders(status.st_ino);
  if (holders.empty()) return std::nullopt;
  const std::optional<pid_t> written = written_pid(folder);
  return written && std::ranges::count(holders, *written) > 0 ? written : holders.front();
}

// A folder there that we may not look into is somebody else's, and none of ours.
static std::optional<StateFolder> find_in_other_place(const Project& project, StatePlace place) {
  try {
    return StateFolder::find(project, other_place(place));
  } catch (const Failure&) {
    return std::nullopt;
  }
}

std::optional<StateFolder> find_state(const Project& project, StatePlace place) {
  std::optional<StateFolder> wanted = StateFolder::find(project, place);
  std::optional<StateFolder> other = find_in_other_place(project, place);
  if (!other || (wanted && DaemonLock::is_held(*wanted))) return wanted;
  return DaemonLock::is_held(*other) ? std::move(other) : std::move(wanted);
}

void refuse_second_daemon(const Project& project, StatePlace place) {
  const std::optional<StateFolder> other = find_in_other_place(project, place);
  if (!other || !DaemonLock::is_held(*other)) return;
  const std::optional<pid_t> pid = lock_holder(*other);
  throw Failure("already running, pid " + (pid ? std::to_string(*pid) : "not known") + ", with its state in " +
                other->shown() + ": stop it before [daemon] state is changed");
}

DaemonLock take_lock_or_fail(const StateFolder& folder) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    if (std::optional<DaemonLock> lock = DaemonLock::take(folder)) return std::move(*lock);
    std::optional<pid_t> pid = answering_daemon(folder);
    const bool late = std::chrono::steady_clock::now() >= deadline;
    if (!pid && late) pid = lock_holder(folder);
    if (!pid && late) pid = written_pid(folder);
    if (pid) throw Failure("already running, pid " + std::to_string(*pid) + "; 'daemon restart' starts it anew");
    if (late)
      throw Failure("already running: another process holds the lock of the project's daemon; 'doctor' looks closer");
    std::this_thread::sleep_for(between_tries);
  }
}

}  // namespace duet::app
