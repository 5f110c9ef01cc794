#include "duet/base/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "duet/base/fd.h"

namespace duet::base {
namespace {

std::string read_proc_file(pid_t pid, const char* name) {
  const std::string path = "/proc/" + std::to_string(pid) + name;
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> room;
  const ssize_t count = file ? read(file.get(), room.data(), room.size()) : 0;
  return {room.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

template <typename Number>
std::optional<Number> read_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

// What stands behind the name, which may hold anything: `) S PARENT …`
std::optional<pid_t> parent_of(pid_t pid) {
  const std::string stat = read_proc_file(pid, "/stat");
  const std::size_t name_end = stat.rfind(')');
  constexpr std::size_t state_and_blanks = 4;
  if (name_end == std::string::npos || stat.size() < name_end + state_and_blanks) return std::nullopt;
  return read_number<pid_t>(std::string_view(stat).substr(name_end + state_and_blanks));
}

std::multimap<pid_t, pid_t> children_by_parent() {
  std::multimap<pid_t, pid_t> children;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (!folder) return children;
  while (const dirent* entry = readdir(folder.get())) {
    const std::optional<pid_t> pid = read_number<pid_t>(entry->d_name);
    const std::optional<pid_t> parent = pid ? parent_of(*pid) : std::nullopt;
    if (parent) children.emplace(*parent, *pid);
  }
  return children;
}

}  // namespace

std::vector<pid_t> descendants(pid_t root) {
  const std::multimap<pid_t, pid_t> children = children_by_parent();
  std::vector<pid_t> found{root};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto child = begin; child != end; ++child) found.push_back(child->second);
  }
  found.erase(found.begin());
  return found;
}

std::uint64_t resident_memory(pid_t pid) {
  const std::string text = read_proc_file(pid, "/statm");
  const std::size_t blank = text.find(' ');
  if (blank == std::string::npos) return 0;
  const auto pages = read_number<std::uint64_t>(std::string_view(text).substr(blank + 1)).value_or(0);
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace duet::base
