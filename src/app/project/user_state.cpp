#include "app/project/user_state.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "app/project/failure.h"
#include "app/words/sha256.h"

namespace duet::app {
namespace {

constexpr mode_t user_folder_mode = 0700;
constexpr mode_t user_file_mode = 0600;

std::string absolute_value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && value[0] == '/' ? value : "";  // the specification has relative ones ignored
}

[[noreturn]] void refuse_folder(const std::string& what, int error, const std::string& variable, int code) {
  throw Failure("cannot " + what + " (" + std::strerror(error) + "): " + variable + " names another place", code);
}

// All of them; those that are there stay as they are.
void make_folders(const std::string& path, const std::string& variable) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), user_folder_mode) != 0 && errno != EEXIST) {
      const int error = errno;
      refuse_folder("make " + part, error, variable, code_of_refused_start(error));
    }
    if (end == path.npos) return;
  }
}

// Not every file system can rename so that nothing is overwritten; those have links.
bool give_name(int folder, const char* temporary, const char* name, WhatIsThere there) {
  if (there == WhatIsThere::goes) return renameat(folder, temporary, folder, name) == 0;
  if (renameat2(folder, temporary, folder, name, RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL) return false;
  return linkat(folder, temporary, folder, name, 0) == 0 && unlinkat(folder, temporary, 0) == 0;
}

}  // namespace

std::string user_state_path() {
  const std::string state = absolute_value_of("XDG_STATE_HOME");
  if (!state.empty()) return state + "/duet-rpc";
  const std::string home = absolute_value_of("HOME");
  return home.empty() ? "" : home + "/.local/state/duet-rpc";
}

// The name is for people, the digits tell projects of the same name apart.
std::string user_state_of(const std::string& project_path) {
  constexpr std::size_t most_of_name = 64;
  constexpr std::size_t digits = 16;
  const std::string user_state = user_state_path();
  if (user_state.empty()) throw Failure("there is no place for the user's state: set HOME or XDG_STATE_HOME");
  const std::string name = project_path.substr(project_path.rfind('/') + 1, most_of_name);
  return user_state + "/projects/" + name + '-' + sha256(project_path).substr(0, digits);
}

std::optional<std::string> why_not_ours(unsigned int owner, unsigned int mode) {
  if (owner != geteuid()) return "it belongs to another user: take it over with chown";
  if ((mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write to it: take that away with chmod go-w";
  return std::nullopt;
}

base::Fd make_user_folder(const std::string& user_state, const std::string& name, const std::string& variable) {
  if (user_state.empty()) throw Failure("there is no place for the user's state: set HOME or " + variable);
  const std::string path = name.empty() ? user_state : user_state + '/' + name;
  make_folders(path, variable);
  base::Fd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat status {};
  if (!folder || fstat(folder.get(), &status) != 0) {
    const int error = errno;
    refuse_folder("open " + path, error, variable, exit_code::failed);
  }
  if (const auto why = why_not_ours(status.st_uid, status.st_mode)) throw Failure(path + " is not used: " + *why);
  if ((status.st_mode & 07777U) != user_folder_mode) base::check_call(fchmod(folder.get(), user_folder_mode), "fchmod");
  return folder;
}

base::Fd lock_in(int folder, const std::string& name, const std::string& place) {
  constexpr std::chrono::seconds patience{10};
  const std::string what = name + " in " + place;
  base::Fd file(openat(folder, name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, user_file_mode));
  if (!file) throw Failure("cannot open " + what + ": " + std::strerror(errno));
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw Failure("cannot lock " + what + ": " + std::strerror(errno));
    if (std::chrono::steady_clock::now() >= deadline) {
      throw Failure("another process has held " + what + " for 10 s: end it, or try again");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return file;
}

bool replace_file(int folder, const std::string& name, std::string_view text, WhatIsThere there) {
  const std::string temporary = name + '.' + std::to_string(getpid());
  unlinkat(folder, temporary.c_str(), 0);  // of a process that was killed and had this number
  const base::Fd file(
      openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, user_file_mode));
  const bool done = file && base::write_all(file.get(), text) && fsync(file.get()) == 0 &&
                    give_name(folder, temporary.c_str(), name.c_str(), there);
  if (done) return fsync(folder) == 0;
  const int error = errno;
  unlinkat(folder, temporary.c_str(), 0);
  errno = error;
  return false;
}

}  // namespace duet::app
