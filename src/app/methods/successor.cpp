#include "app/methods/successor.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <string>
#include <string_view>
#include <utility>

#include "app/words/program_name.h"

namespace duet::app {
namespace {

constexpr std::string_view other_name = "aiwg";

base::Fd program_of(const std::string& process) {
  return base::Fd(open(("/proc/" + process + "/exe").c_str(), O_RDONLY | O_CLOEXEC));
}

// It may have been replaced since it was started, as by an upgrade.
std::string name_of(const base::Fd& program) {
  constexpr std::string_view replaced = " (deleted)";
  std::array<char, PATH_MAX> room;
  const std::string link = "/proc/self/fd/" + std::to_string(program.get());
  const ssize_t size = readlink(link.c_str(), room.data(), room.size());
  std::string_view path(room.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  if (path.ends_with(replaced)) path.remove_suffix(replaced.size());
  return std::string(path.substr(path.rfind('/') + 1));
}

}  // namespace

base::Fd successor_for(pid_t asking) {
  base::Fd theirs = program_of(std::to_string(asking));
  if (!theirs) return theirs;
  base::Fd own = program_of("self");
  const std::string name = name_of(theirs);
  const bool is_ours = name == program_name || name == other_name || name == name_of(own);
  return is_ours ? std::move(theirs) : std::move(own);
}

}  // namespace duet::app
