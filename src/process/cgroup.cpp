#include "process/cgroup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <system_error>

namespace duet::process {
namespace {

constexpr std::uint64_t cpu_period = 100'000;  // microseconds
constexpr char help[] =
    "run the daemon as a systemd user service with 'Delegate=yes', as the unit that comes with it says";

int write_file(const std::string& path, std::string_view text) {
  const base::Fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file) return errno;
  return ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : errno;
}

std::vector<std::string> words_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istream_iterator<std::string>(file), {}};
}

// The number behind a name in a file of names and numbers.
std::optional<std::uint64_t> number_in(const std::string& path, std::string_view wanted) {
  std::ifstream file(path);
  std::string name;
  std::uint64_t number = 0;
  while (file >> name >> number) {
    if (name == wanted) return number;
  }
  return std::nullopt;
}

template <typename Number>
std::optional<Number> smaller(const std::optional<Number>& one, const std::optional<Number>& other) {
  if (one && other) return std::min(*one, *other);
  return one ? one : other;
}

// Where cgroups of version 2 are mounted, if all of them are there.
std::optional<std::string> mount_point() {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string skipped;
    std::string root;
    std::string place;
    words >> skipped >> skipped >> skipped >> root >> place;
    if (line.find(" - cgroup2 ") != std::string::npos && root == "/") return place;
  }
  return std::nullopt;
}

std::optional<std::string> own_cgroup() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line == "0::/" ? std::string() : line.substr(3);
  }
  return std::nullopt;
}

// systemd marks what it hands over. Without it, who is not root could not write where nothing was handed over.
bool is_handed_over(const std::string& folder) {
  if (geteuid() != 0 || access("/run/systemd/system", F_OK) != 0) return true;
  char mark = 0;
  for (const char* name : {"trusted.delegate", "user.delegate"}) {
    if (getxattr(folder.c_str(), name, &mark, 1) == 1 && mark == '1') return true;
  }
  return false;
}

bool may_divide(const std::string& folder) {
  if (!is_handed_over(folder)) return false;
  for (const char* file : {"", "/cgroup.procs", "/cgroup.subtree_control"}) {
    if (access((folder + file).c_str(), W_OK) != 0) return false;
  }
  return true;
}

bool enter(const std::string& folder) { return write_file(folder + "/cgroup.procs", std::to_string(getpid())) == 0; }

bool enter_leaf(const std::string& leaf) {
  if (mkdir(leaf.c_str(), 0755) != 0 && errno != EEXIST) return false;
  return enter(leaf);
}

std::vector<pid_t> processes_in(const std::string& cgroup) {
  std::ifstream file(cgroup + "/cgroup.procs");
  return {std::istream_iterator<pid_t>(file), {}};
}

// It and those below it, each behind the one that it is in.
std::vector<std::string> all_of(const std::string& cgroup) {
  std::vector<std::string> found{cgroup};
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator each(cgroup, error), end; !error && each != end;) {
    std::error_code ignored;  // it is gone
    if (each->is_directory(ignored)) found.push_back(each->path().string());
    each.increment(error);
  }
  return found;
}

// A line for each, below their heading.
bool has_swap(const std::string& swaps) {
  std::ifstream file(swaps);
  std::string line;
  return std::getline(file, line) && std::getline(file, line);
}

std::string controllers_for(const Limits& limits) {
  std::string names;
  if (limits.memory) names += " memory";
  if (limits.processes) names += " pids";
  if (limits.cpu) names += " cpu";
  return names;
}

}  // namespace

Limits both(const Limits& one, const Limits& other) {
  return {.memory = smaller(one.memory, other.memory),
          .processes = smaller(one.processes, other.processes),
          .cpu = smaller(one.cpu, other.cpu)};
}

tl::expected<CgroupHome, std::string> CgroupHome::find() {
  const auto mounted = mount_point();
  const auto own = own_cgroup();
  if (!mounted || !own) return tl::unexpected(std::string("this machine has no cgroups of version 2 mounted"));
  return find_at(*mounted + *own);
}

tl::expected<CgroupHome, std::string> CgroupHome::find_at(const std::string& folder) {
  const std::size_t name = folder.rfind('/');
  const std::string above = folder.substr(0, name);
  const bool is_in_leaf = name != std::string::npos && folder.substr(name + 1) == leaf_name;
  if (is_in_leaf && may_divide(above) && processes_in(above).empty()) return CgroupHome(above);
  // A cgroup with other processes in it is theirs as well, whatever may be written there.
  const std::vector<pid_t> there = processes_in(folder);
  const bool is_alone = there.size() == 1 && there.front() == getpid();
  if (is_alone && may_divide(folder) && enter_leaf(folder + '/' + leaf_name)) return CgroupHome(folder);
  return tl::unexpected(std::string("the daemon has no cgroup of its own that it may divide: ") + help);
}

tl::expected<void, std::string> CgroupHome::provide_for(const Limits& limits, const std::string& swaps) const {
  const std::vector<std::string> offered = words_in(folder_ + "/cgroup.controllers");
  const std::vector<std::string> enabled = words_in(folder_ + "/cgroup.subtree_control");
  std::istringstream wanted(controllers_for(limits));
  for (std::string name; wanted >> name;) {
    if (std::ranges::find(enabled, name) != enabled.end()) continue;
    if (std::ranges::find(offered, name) == offered.end()) {
      return tl::unexpected("the cgroup of the daemon has no controller '" + name + "': " + help);
    }
    const int error = write_file(folder_ + "/cgroup.subtree_control", "+" + name);
    if (error == 0) continue;
    return tl::unexpected("the controller '" + name + "' cannot be switched on in the cgroup of the daemon (" +
                          std::generic_category().message(error) + "): " + help);
  }
  const std::string swap_limit = folder_ + '/' + leaf_name + "/memory.swap.max";
  if (limits.memory && access(swap_limit.c_str(), F_OK) != 0 && has_swap(swaps)) {
    return tl::unexpected(
        std::string("the kernel does not count what a cgroup has in swap ('swapaccount=0'), so a "
                    "limit of memory would bound nothing"));
  }
  return {};
}

std::vector<std::string> CgroupHome::offered() const {
  const std::vector<std::string> controllers = words_in(folder_ + "/cgroup.controllers");
  std::vector<std::string> names;
  const auto add = [&](const char* controller, const char* name) {
    if (std::ranges::find(controllers, controller) != controllers.end()) names.emplace_back(name);
  };
  add("memory", "memory");
  add("pids", "processes");
  add("cpu", "cpu");
  return names;
}

Cgroup::Cgroup(std::string folder, const Limits& limits) : folder_(std::move(folder)) {
  base::check_call(mkdir(folder_.c_str(), 0755), "a cgroup for the limits");
  try {
    if (limits.memory) {
      write("memory.max", std::to_string(*limits.memory));
      const bool counts_swap = access((folder_ + "/memory.swap.max").c_str(), F_OK) == 0;  // else there is none
      if (counts_swap) write("memory.swap.max", "0");
      write("memory.oom.group", "1");
    }
    if (limits.processes) write("pids.max", std::to_string(*limits.processes));
    if (!limits.cpu) return;
    const auto quota = static_cast<std::uint64_t>(std::llround(*limits.cpu * static_cast<double>(cpu_period)));
    write("cpu.max", std::to_string(quota) + ' ' + std::to_string(cpu_period));
  } catch (const std::system_error&) {
    rmdir(folder_.c_str());
    throw;
  }
}

Cgroup::~Cgroup() { remove_cgroup(folder_); }

void Cgroup::write(const char* file, const std::string& value) const {
  const int error = write_file(folder_ + '/' + file, value);
  if (error == 0) return;
  throw std::system_error(error, std::generic_category(), std::string("a limit cannot be set: ") + file);
}

base::Fd Cgroup::entrance() const {
  const std::string path = folder_ + "/cgroup.procs";
  return base::Fd(base::check_call(open(path.c_str(), O_WRONLY | O_CLOEXEC), "the cgroup for the limits"));
}

Cgroup::Counts Cgroup::counts() const {
  Counts counts;
  if (const auto used = number_in(folder_ + "/cpu.stat", "usage_usec")) counts.cpu = std::chrono::microseconds(*used);
  std::uint64_t limit = 0;  // or the word `max`
  if (!(std::ifstream(folder_ + "/memory.max") >> limit)) return counts;
  std::uint64_t peak = 0;
  if (std::ifstream(folder_ + "/memory.peak") >> peak) counts.max_memory = peak;  // since Linux 5.19
  // Processes that were killed for want of memory anywhere else, as on the whole machine, are in `oom_kill` as well.
  const std::string events = folder_ + "/memory.events";
  if (number_in(events, "oom").value_or(0) > 0) counts.killed_for_memory = number_in(events, "oom_kill").value_or(0);
  return counts;
}

std::vector<pid_t> Cgroup::processes() const { return processes_below(folder_); }

void Cgroup::kill_all() const { kill_cgroup(folder_); }

std::vector<pid_t> processes_below(const std::string& cgroup) {
  std::vector<pid_t> found;
  for (const std::string& each : all_of(cgroup)) std::ranges::copy(processes_in(each), std::back_inserter(found));
  return found;
}

void kill_cgroup(const std::string& cgroup) { write_file(cgroup + "/cgroup.kill", "1"); }  // since Linux 5.14

void remove_cgroup(const std::string& cgroup) {
  const std::vector<std::string> all = all_of(cgroup);
  std::for_each(all.rbegin(), all.rend(), [](const std::string& each) { rmdir(each.c_str()); });
}

void leave_cgroup_of_tree() {
  const auto mounted = mount_point();
  const auto own = own_cgroup();
  if (mounted && own) leave_cgroup_of_tree(*mounted + *own);
}

// Out of each one, the innermost first, since there may be trees in trees. All that a home holds are its leaf and
// trees.
void leave_cgroup_of_tree(const std::string& folder) {
  const std::filesystem::path leaf_name = CgroupHome::leaf_name;
  for (std::filesystem::path at = folder; at.has_relative_path(); at = at.parent_path()) {
    const std::filesystem::path leaf = at.parent_path() / leaf_name;
    if (at.filename() != leaf_name && access(leaf.c_str(), F_OK) == 0) enter(leaf.string());
  }
}

}  // namespace duet::process
