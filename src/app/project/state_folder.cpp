#include "app/project/state_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "app/project/failure.h"
#include "app/project/user_state.h"

namespace duet::app {
namespace {

constexpr char lock_variable[] = "DUET_RPC_LOCK";
constexpr int least_handed_descriptor = 10;  // those before have meanings of their own

constexpr mode_t shared_folder = 0755;  // not wider: who may write there could put a daemon of his own in place of ours
constexpr mode_t private_folder = 0700;
constexpr mode_t private_file = 0600;

std::string reason() { return std::strerror(errno); }

std::string remedy(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
      return "the daemon needs a folder that it may write to; --project names another";
    case ENOTDIR:
    case ENOENT:
    case ELOOP:
    case EISDIR:
      return "what is there is not the daemon's own: move it away, or use another --project";
    case ENOSPC:
    case EDQUOT:
      return "make room on its disk, or use another --project";
    default:
      return "--project names another folder";
  }
}

Failure not_usable(const std::string& root, const char* verb, const char* shown, int error) {
  return Failure(
      "cannot " + std::string(verb) + ' ' + shown + " in " + root + " (" + std::strerror(error) + "): " + remedy(error),
      code_of_refused_start(error));
}

base::Fd make_folder(const Project& project, int above, const char* name, const char* shown, mode_t mode, int flags) {
  if (mkdirat(above, name, mode) != 0 && errno != EEXIST) throw not_usable(project.root, "make", shown, errno);
  base::Fd folder(openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
  if (!folder) throw not_usable(project.root, "open", shown, errno);
  return folder;
}

void make_private(const Project& project, int folder) {
  struct stat status {};
  base::check_call(fstat(folder, &status), "fstat");
  if (status.st_uid != geteuid()) {
    throw Failure(std::string(state_path) + " in " + project.root +
                  " belongs to another user: remove it, or use another --project");
  }
  if ((status.st_mode & 07777U) != private_folder) base::check_call(fchmod(folder, private_folder), "fchmod");
}

std::string path_of_project(const Project& project) {
  std::string present = present_path(project);
  return present.empty() ? project.root : present;
}

// The lock of the program that this process was before, if it has left one.
base::Fd handed_lock(const StateFolder& folder) {
  const char* const value = std::getenv(lock_variable);
  const int file = value == nullptr ? -1 : std::atoi(value);
  unsetenv(lock_variable);
  struct stat handed {};
  struct stat found {};
  const bool is_ours = file >= least_handed_descriptor && fstat(file, &handed) == 0 &&
                       fstatat(folder.descriptor(), lock_name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
                       handed.st_dev == found.st_dev && handed.st_ino == found.st_ino;
  if (!is_ours || fcntl(file, F_SETFD, FD_CLOEXEC) != 0) return {};
  return base::Fd(file);
}

}  // namespace

std::optional<StateFolder> StateFolder::find(const Project& project, StatePlace place) {
  if (place == StatePlace::user) return find_of_user(project);
  base::Fd folder(openat(project.directory.get(), state_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (folder) return StateFolder(std::move(folder), project.root);
  if (errno != EACCES && errno != EPERM) return std::nullopt;
  throw Failure("cannot open " + std::string(state_path) + " in " + project.root + " (" + reason() +
                "): the daemon of another user answers that user only");
}

std::optional<StateFolder> StateFolder::find_of_user(const Project& project) {
  if (user_state_path().empty()) return std::nullopt;
  std::string path = user_state_of(path_of_project(project));
  base::Fd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (folder) return StateFolder(std::move(folder), project.root, std::move(path));
  if (errno == ENOENT) return std::nullopt;
  throw Failure("cannot open " + path + " (" + reason() + "): it belongs to another user, or is no folder");
}

StateFolder StateFolder::make_of_user(const Project& project) {
  std::string path = user_state_of(path_of_project(project));
  base::Fd folder = make_user_folder(path);
  StateFolder state(std::move(folder), project.root, std::move(path));
  if (state.read_small("project").empty()) state.write_small("project", path_of_project(project) + '\n');
  return state;
}

StateFolder StateFolder::make(const Project& project, StatePlace place) {
  if (place == StatePlace::user) return make_of_user(project);
  const base::Fd above = make_folder(project, project.directory.get(), ".aiwg", ".aiwg", shared_folder, 0);
  // A link could lead to a folder with a purpose of its own, whose mode we would change.
  base::Fd folder = make_folder(project, above.get(), "daemon", state_path, private_folder, O_NOFOLLOW);
  make_private(project, folder.get());
  StateFolder state(std::move(folder), project.root);
  if (state.read_small(".gitignore") != "*\n") state.write_small(".gitignore", "*\n");
  return state;
}

std::string StateFolder::path_of(const std::string& name) const {
  return "/proc/self/fd/" + std::to_string(folder_.get()) + '/' + name;
}

std::string StateFolder::read_small(const std::string& name, std::size_t most) const {
  const base::Fd file(openat(descriptor(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  std::string text;
  std::array<char, 4096> room;
  ssize_t count = file ? 1 : 0;
  while (count > 0 && text.size() < most) {
    count = read(file.get(), room.data(), std::min(room.size(), most - text.size()));
    if (count > 0) text.append(room.data(), static_cast<std::size_t>(count));
  }
  return text;
}

void StateFolder::write_small(const std::string& name, std::string_view text) const {
  const std::string temporary = name + '.' + std::to_string(getpid());  // several may start at once
  const base::Fd file(
      openat(descriptor(), temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, private_file));
  const bool written = file && base::write_all(file.get(), text);
  if (written && renameat(descriptor(), temporary.c_str(), descriptor(), name.c_str()) == 0) return;
  const Failure failure = not_usable(root_, "write to", shown().c_str(), errno);
  remove(temporary);
  throw failure;
}

Failure StateFolder::unusable(const std::string& name, int error) const {
  return not_usable(root_, "open", (shown() + '/' + name).c_str(), error);
}

void StateFolder::remove(const std::string& name) const { unlinkat(descriptor(), name.c_str(), 0); }

std::optional<DaemonLock> DaemonLock::take(const StateFolder& folder) {
  base::Fd file = handed_lock(folder);
  if (!file) {
    file.reset(openat(folder.descriptor(), lock_name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, private_file));
  }
  if (!file) throw folder.unusable(lock_name, errno);
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0) return DaemonLock(std::move(file), folder.elsewhere());
  if (errno == EWOULDBLOCK) return std::nullopt;
  throw Failure("the file system of the project has no locks (" + reason() +
                "): keep the project on another one, since a daemon needs them to be the only one");
}

void DaemonLock::hand_on() const {
  const int kept = fcntl(file_.get(), F_DUPFD, least_handed_descriptor);
  if (kept >= 0) setenv(lock_variable, std::to_string(kept).c_str(), 1);
}

bool DaemonLock::is_held(const StateFolder& folder) {
  const base::Fd file(openat(folder.descriptor(), lock_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return file && flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

bool DaemonLock::is_in_place(const Project& project) const {
  const std::string path =
      (elsewhere_.empty() ? state_path : elsewhere_) + '/' + lock_name;  // absolute, or in the project
  struct stat held {};
  struct stat found {};
  return fstat(file_.get(), &held) == 0 && fstatat(project.directory.get(), path.c_str(), &found, 0) == 0 &&
         held.st_dev == found.st_dev && held.st_ino == found.st_ino;
}

std::optional<pid_t> written_pid(const StateFolder& folder) {
  const std::string text = folder.read_small(pid_name);
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || pid <= 0) return std::nullopt;
  return pid;
}

}  // namespace duet::app
