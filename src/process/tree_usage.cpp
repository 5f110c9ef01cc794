#include "process/tree_usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_set>

#include "duet/base/fd.h"
#include "process/process_tree.h"

namespace duet::process {
namespace {

using std::chrono::microseconds;

constexpr std::size_t most_looked_at = 4096;  // processes of one tree
constexpr std::uint64_t kibibyte = 1024;

microseconds to_time(const timeval& time) { return std::chrono::seconds(time.tv_sec) + microseconds(time.tv_usec); }

std::string folder_of(pid_t pid) { return "/proc/" + std::to_string(pid); }

bool is_spared(pid_t pid, const Spared& spared) {
  const auto process = spared ? read_process(pid) : std::nullopt;
  return process && spared(*process);
}

// Each thread has the children that it has forked.
void add_children(pid_t pid, const Spared& spared, std::vector<pid_t>& found, std::unordered_set<pid_t>& known) {
  const std::string threads = folder_of(pid) + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(threads.c_str()), closedir);
  if (!folder) return;
  while (const dirent* entry = readdir(folder.get())) {
    if (entry->d_name[0] == '.') continue;
    std::ifstream children(threads + '/' + entry->d_name + "/children");
    for (pid_t child = 0; children >> child;) {
      const bool is_new = known.insert(child).second;  // a thread that ends hands on its children
      if (is_new && !is_spared(child, spared)) found.push_back(child);
    }
  }
}

// Of this process and those it has waited for.
microseconds cpu_time(pid_t pid) {
  std::ifstream file(folder_of(pid) + "/stat");
  std::string text;
  std::getline(file, text, '\0');
  const std::size_t name_end = text.rfind(") ");  // a name may hold anything
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 2));
  std::string skipped;
  for (int field = 3; field < 14; ++field) rest >> skipped;
  std::int64_t ticks = 0;
  for (int field = 14; field < 18; ++field) {
    std::int64_t each = 0;
    rest >> each;
    ticks += each;
  }
  return microseconds(ticks * 1'000'000 / sysconf(_SC_CLK_TCK));
}

// What it has for itself, and its share of what it shares.
std::uint64_t share_of_memory(pid_t pid) {
  std::ifstream file(folder_of(pid) + "/smaps_rollup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Pss:")) return std::strtoull(line.c_str() + 4, nullptr, 10) * kibibyte;
  }
  return 0;
}

// Of all those below this process together. One that was found may have ended meanwhile, and its number be another's:
// that one's parent is none of them.
template <typename Measure>
auto sum_below(const std::vector<pid_t>& found, Measure measure) {
  const std::unordered_set<pid_t> known(found.begin(), found.end());
  decltype(measure(0)) sum{};
  for (const pid_t pid : found) {
    const auto measured = measure(pid);
    const auto process = read_process(pid);
    if (process && (process->parent == getpid() || known.contains(process->parent))) sum += measured;
  }
  return sum;
}

}  // namespace

std::vector<pid_t> children_below(pid_t root, const Spared& spared) {
  std::vector<pid_t> found;
  std::unordered_set<pid_t> known;
  add_children(root, spared, found, known);
  for (std::size_t i = 0; i < found.size() && found.size() < most_looked_at; ++i) {
    add_children(found[i], spared, found, known);
  }
  return found;
}

void forget_peak_memory() {
  const base::Fd file(open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC));
  [[maybe_unused]] const ssize_t written = write(file.get(), "5", 1);  // else the figure is larger
}

void TreeUsage::reaped(pid_t pid, const rusage& used) {
  if (others_.erase(pid) > 0) return;
  reaped_ += to_time(used.ru_utime) + to_time(used.ru_stime);
  largest_ = std::max(largest_, static_cast<std::uint64_t>(used.ru_maxrss) * kibibyte);
}

void TreeUsage::look() {
  others_.clear();
  const std::vector<pid_t> living = children_below(getpid(), [this](const ProcessEntry& process) {
    const bool is_other = spared_ && spared_(process);
    if (is_other) others_.insert(process.pid);
    return is_other;
  });
  if (living.size() < 2) return;  // of one process the kernel keeps the peak itself
  together_ = std::max(together_, sum_below(living, share_of_memory));
}

Usage TreeUsage::so_far(bool living) const {
  Usage usage{.cpu = reaped_, .max_memory = std::max(largest_, together_)};
  if (!living) return usage;
  usage.cpu += sum_below(children_below(getpid(), spared_), cpu_time);
  return usage;
}

}  // namespace duet::process
