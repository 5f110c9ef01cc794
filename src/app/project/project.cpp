#include "app/project/project.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "app/project/failure.h"

namespace duet::app {
namespace {

constexpr int how_to_open = O_PATH | O_DIRECTORY | O_CLOEXEC;

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

std::string path_of(int folder) {
  const base::Fd here(base::check_call(open(".", how_to_open), "opening the working directory"));
  base::check_call(fchdir(folder), "entering the project's folder");
  std::string path = working_directory();
  base::check_call(fchdir(here.get()), "going back to the working directory");
  return path;
}

Project opened(const std::string& given) {
  base::Fd folder(open(given.c_str(), how_to_open));
  if (!folder) {
    throw Failure("cannot use '" + given + "' as the project (" + std::strerror(errno) +
                  "): --project wants a folder that exists");
  }
  std::string root = path_of(folder.get());
  return {std::move(root), std::move(folder)};
}

// Somebody else's mark in a folder where everybody may write does not count.
bool has_mark(int folder, const char* name, bool must_be_folder) {
  struct stat mark {};
  if (fstatat(folder, name, &mark, 0) != 0) return false;
  if (must_be_folder && !S_ISDIR(mark.st_mode)) return false;
  return mark.st_uid == geteuid() || mark.st_uid == 0;
}

bool is_project(int folder, const struct stat& status) {
  struct stat home {};
  const char* const home_path = std::getenv("HOME");
  const bool is_home = home_path != nullptr && stat(home_path, &home) == 0 && same_file(home, status);
  if (is_home || status.st_uid != geteuid()) return false;
  return has_mark(folder, ".aiwg", true) || has_mark(folder, ".git", false);  // a worktree's .git is a file
}

std::string without_last_names(std::string path, std::size_t count) {
  for (; count > 0; --count) path.erase(path.rfind('/'));
  return path.empty() ? "/" : path;
}

// The nearest project from `folder` upward, and how many levels up it is.
std::optional<std::pair<base::Fd, std::size_t>> search(int start) {
  base::Fd folder = base::duplicate(start);
  for (std::size_t level = 0;; ++level) {
    struct stat status {};
    if (fstat(folder.get(), &status) != 0) return std::nullopt;
    if (is_project(folder.get(), status)) return std::pair(std::move(folder), level);
    base::Fd above(openat(folder.get(), "..", how_to_open));
    struct stat status_above {};
    const bool ended = !above || fstat(above.get(), &status_above) != 0 || same_file(status, status_above);
    if (ended) return std::nullopt;
    folder = std::move(above);
  }
}

Project opened_above(Project start, std::pair<base::Fd, std::size_t> found) {
  return {without_last_names(std::move(start.root), found.second), std::move(found.first)};
}

}  // namespace

std::optional<Project> nearest_project(const std::string& folder) {
  Project start = opened(folder);
  auto found = search(start.directory.get());
  if (!found) return std::nullopt;
  return opened_above(std::move(start), std::move(*found));
}

std::string present_path(const Project& project) {
  std::array<char, PATH_MAX> room;
  const std::string link = "/proc/self/fd/" + std::to_string(project.directory.get());
  const ssize_t size = readlink(link.c_str(), room.data(), room.size());
  return {room.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

// Of any length: glibc climbs up by itself where the system call has no room.
std::string working_directory(const std::string& remedy) {
  const std::unique_ptr<char, void (*)(void*)> text(getcwd(nullptr, 0), std::free);
  if (text != nullptr) return text.get();
  throw Failure("the working directory is gone or cannot be read (" + std::string(std::strerror(errno)) +
                "): " + remedy);
}

Project find_project(const std::optional<std::string>& given) {
  if (given) return opened(*given);
  std::string here = working_directory("change to another one or give --project");
  base::Fd folder(base::check_call(open(".", how_to_open), "opening the working directory"));
  auto found = search(folder.get());
  Project start{std::move(here), std::move(folder)};
  return found ? opened_above(std::move(start), std::move(*found)) : std::move(start);
}

}  // namespace duet::app
