#include "task/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <set>
#include <string>

namespace duet::task {
namespace {

std::optional<std::string> read_file(const std::string& path) {
  const base::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::string text;
  std::size_t size = 0;
  while (true) {
    text.resize(size + 4096);
    const ssize_t count = read(file.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    size += static_cast<std::size_t>(count);
    text.resize(size);
    if (count == 0) return text;
  }
}

// The names in a folder that are numbers.
std::vector<pid_t> numbers_in(const std::string& path) {
  const auto close_folder = [](DIR* folder) { closedir(folder); };
  const std::unique_ptr<DIR, decltype(close_folder)> folder(opendir(path.c_str()), close_folder);
  std::vector<pid_t> numbers;
  if (!folder) return numbers;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    pid_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc() && end == name.data() + name.size()) numbers.push_back(number);
  }
  return numbers;
}

template <typename Number>
bool take_number(std::string_view& text, Number& number) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

// The children of all threads, as a kernel tells that was built to; nullopt if this one was not.
std::optional<std::vector<pid_t>> listed_children(pid_t pid) {
  const std::string threads = "/proc/" + std::to_string(pid) + "/task/";
  std::vector<pid_t> children;
  for (const pid_t thread : numbers_in(threads)) {
    const auto text = read_file(threads + std::to_string(thread) + "/children");
    if (!text && errno == ENOENT && pid == getpid()) return std::nullopt;
    std::string_view rest = text ? std::string_view(*text) : std::string_view();
    for (pid_t child = 0; take_number(rest, child);) children.push_back(child);
  }
  return children;
}

std::vector<pid_t> children_by_parent(pid_t pid) {
  std::vector<pid_t> children;
  for (const ProcessEntry& entry : all_processes()) {
    if (entry.parent == pid) children.push_back(entry.pid);
  }
  return children;
}

// Signals the processes below `parent`. What is killed cannot fork any more, so its children are looked up after that.
class Sweep {
 public:
  explicit Sweep(int signal) : signal_(signal), lists_(listed_children(getpid()).has_value()) {}

  void below(pid_t parent) {
    for (const pid_t pid : children_of(parent)) {
      const auto entry = read_process(pid);
      if (!entry || entry->parent != parent || !seen_.insert(pid).second) continue;
      if (!entry->is_zombie()) hit(*entry);
      below(pid);
    }
  }

 private:
  std::vector<pid_t> children_of(pid_t pid) const {
    if (!lists_) return children_by_parent(pid);
    return listed_children(pid).value_or(std::vector<pid_t>());
  }

  void hit(const ProcessEntry& entry) {
    // Groups live inside sessions, and every session down here was made down here.
    if (signal_ == SIGKILL && entry.session != getsid(0) && groups_.insert(entry.group).second) {
      kill(-entry.group, SIGKILL);
    }
    const base::Fd held = hold_process(entry);
    signal_process(held, signal_);
    if (entry.state == 'T') signal_process(held, SIGCONT);
  }

  int signal_;
  bool lists_;
  std::set<pid_t> seen_;
  std::set<pid_t> groups_;
};

}  // namespace

std::optional<ProcessEntry> read_process(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return std::nullopt;
  const std::size_t name_end = text->rfind(") ");
  if (name_end == std::string::npos || name_end + 3 > text->size()) return std::nullopt;
  ProcessEntry entry;
  entry.pid = pid;
  entry.state = (*text)[name_end + 2];
  std::string_view rest = std::string_view(*text).substr(name_end + 3);
  long long skipped = 0;
  bool good = take_number(rest, entry.parent) && take_number(rest, entry.group) && take_number(rest, entry.session);
  for (int field = 7; field < 22; ++field) good = good && take_number(rest, skipped);
  if (!good || !take_number(rest, entry.start_ticks)) return std::nullopt;
  return entry;
}

std::vector<ProcessEntry> all_processes() {
  std::vector<ProcessEntry> entries;
  for (const pid_t pid : numbers_in("/proc")) {
    if (const auto entry = read_process(pid)) entries.push_back(*entry);
  }
  return entries;
}

bool has_in_environment(pid_t pid, std::string_view assignment) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/environ");
  if (!text) return false;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    if (rest.substr(0, end) == assignment) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::string boot_id() {
  std::string id = read_file("/proc/sys/kernel/random/boot_id").value_or("");
  return id.substr(0, id.find('\n'));
}

base::Fd hold_process(const ProcessEntry& entry) {
  base::Fd held(static_cast<int>(syscall(SYS_pidfd_open, entry.pid, 0)));
  const auto now = read_process(entry.pid);
  if (!now || now->start_ticks != entry.start_ticks) held.reset();
  return held;
}

void signal_process(const base::Fd& held, int signal) {
  if (held) syscall(SYS_pidfd_send_signal, held.get(), signal, nullptr, 0);
}

void signal_descendants(int signal) { Sweep(signal).below(getpid()); }

}  // namespace duet::task
