#include "process/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "duet/base/clock.h"

namespace duet::process {
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

std::string proc_file(pid_t pid, const char* name) { return "/proc/" + std::to_string(pid) + name; }

template <typename Number>
bool take_number(std::string_view& text, Number& number) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return error == std::errc();
}

std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(" \n"));
  text.remove_prefix(word.size());
  return word;
}

// The fields of /proc/PID/stat from the third on, the state; empty if there is no such process.
std::string read_stat(pid_t pid) {
  const std::string text = read_file(proc_file(pid, "/stat")).value_or("");
  const std::size_t name_end = text.rfind(") ");  // a name may hold anything
  return name_end == std::string::npos ? std::string() : text.substr(name_end + 2);
}

enum class Shown : std::uint8_t { none, there, to_come };

// What there is of a process that shows no environment. While it is being executed the kernel knows the new memory, and
// not yet what is in it, no code and no environment. Kernel threads, zombies and processes that were started without an
// environment have none.
Shown environment_of(pid_t pid) {
  const std::string stat = read_stat(pid);
  std::string_view rest = stat;
  std::array<std::string_view, 52> fields;  // as proc(5) counts them
  for (std::size_t field = 3; field < fields.size(); ++field) fields[field] = take_word(rest);
  const bool has_memory = fields[23] != "" && fields[23] != "0";
  const bool has_code = fields[26] != "0";
  const bool has_environment = fields[50] != fields[51];
  if (!has_memory || (has_code && !has_environment)) return Shown::none;
  return has_code ? Shown::there : Shown::to_come;
}

std::string read_environment(pid_t pid) {
  constexpr std::chrono::seconds patience{1};
  const base::TimePoint deadline = base::system_clock().now() + patience;
  int looks = 10;  // at one that is there, and may have become another one meanwhile
  while (true) {
    std::optional<std::string> text = read_file(proc_file(pid, "/environ"));
    if (!text) return {};  // the process is gone, or not ours to see
    if (!text->empty()) return *std::move(text);
    const Shown there = environment_of(pid);
    const bool is_in_vain = there == Shown::there ? --looks == 0 : base::system_clock().now() >= deadline;
    if (there == Shown::none || is_in_vain) return {};
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// Sends a signal to the processes below this one, to each once.
class Sweep {
 public:
  Sweep(int signal, const Spared& spared) : signal_(signal), spared_(spared) {}

  // Whether there was somebody to send it to.
  bool look() {
    const bool first = seen_.empty();
    bool found = false;
    for (const ProcessEntry& entry : descendants(getpid(), spared_)) {
      // Those of a parent that lives may be there to clean up after a gentle signal.
      const bool wanted = first || signal_ == SIGKILL || entry.parent == getpid();
      if (!wanted || entry.is_zombie() || !seen_.insert(entry.pid).second) continue;
      hit(entry);
      found = true;
    }
    return found;
  }

 private:
  void hit(const ProcessEntry& entry) {
    // Groups live inside sessions, and every session down here was made down here.
    if (signal_ == SIGKILL && entry.session != getsid(0) && groups_.insert(entry.group).second) {
      kill(-entry.group, SIGKILL);
    }
    const base::Fd held = hold_process(entry);
    signal_process(held, signal_);
    signal_process(held, SIGCONT);  // to all: who is being stopped right now does not look stopped yet
  }

  int signal_;
  const Spared& spared_;
  std::set<pid_t> seen_;
  std::set<pid_t> groups_;
};

}  // namespace

std::optional<ProcessEntry> read_process(pid_t pid) {
  const std::string text = read_stat(pid);
  if (text.empty()) return std::nullopt;
  ProcessEntry entry;
  entry.pid = pid;
  entry.state = text[0];
  std::string_view rest = std::string_view(text).substr(1);
  long long skipped = 0;
  bool good = take_number(rest, entry.parent) && take_number(rest, entry.group) && take_number(rest, entry.session);
  for (int field = 7; field < 22; ++field) good = good && take_number(rest, skipped);
  if (!good || !take_number(rest, entry.start_ticks)) return std::nullopt;
  return entry;
}

std::vector<ProcessEntry> all_processes() {
  std::vector<ProcessEntry> entries;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (!folder) return entries;
  while (const dirent* file = readdir(folder.get())) {
    std::string_view name = file->d_name;
    pid_t pid = 0;
    if (!take_number(name, pid) || !name.empty()) continue;
    if (const auto entry = read_process(pid)) entries.push_back(*entry);
  }
  return entries;
}

std::vector<ProcessEntry> descendants(pid_t root, const Spared& spared) {
  std::multimap<pid_t, ProcessEntry> by_parent;
  for (const ProcessEntry& entry : all_processes()) by_parent.emplace(entry.parent, entry);
  std::vector<ProcessEntry> found;
  const auto take_children = [&](pid_t parent) {
    const auto [begin, end] = by_parent.equal_range(parent);
    for (auto child = begin; child != end; ++child) {
      if (!spared || !spared(child->second)) found.push_back(child->second);
    }
    by_parent.erase(begin, end);
  };
  take_children(root);
  for (std::size_t i = 0; i < found.size(); ++i) take_children(found[i].pid);
  return found;
}

bool has_in_environment(pid_t pid, std::string_view assignment) {
  const std::string text = read_environment(pid);
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    if (rest.substr(0, end) == assignment) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::uint64_t resident_memory(pid_t pid) {
  const std::string text = read_file(proc_file(pid, "/statm")).value_or("");
  std::string_view rest = text;
  std::uint64_t size = 0;
  std::uint64_t resident = 0;
  if (!take_number(rest, size) || !take_number(rest, resident)) return 0;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
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

// While a group has members nobody gets its number, and who gets it afterwards has another start.
void kill_group(const ProcessEntry& leader) {
  const auto now = read_process(leader.pid);
  if (!now || now->start_ticks == leader.start_ticks) kill(-leader.pid, SIGKILL);
}

// Twice, for those that were forked while the first look lasted.
void kill_descendants(pid_t root) {
  const auto top = read_process(root);
  if (!top) return;
  for (int look = 0; look < 2; ++look) {
    for (const ProcessEntry& entry : descendants(root)) {
      if (entry.session != top->session) kill(-entry.group, SIGKILL);
      signal_process(hold_process(entry), SIGKILL);
    }
  }
}

// A process that ended of the signal cannot fork any more: what it forked until then is found by looking again. Only
// once again, since there may be no end to processes that are born.
void signal_descendants(int signal, const Spared& spared) {
  Sweep sweep(signal, spared);
  if (sweep.look()) sweep.look();
}

}  // namespace duet::process
