#include "task/leftovers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "process/cgroup.h"
#include "task/outsider.h"

namespace duet::task {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kill_again{200};
constexpr milliseconds look_pause{200};
constexpr int most_looks = 3;           // in a row
constexpr std::size_t most_held = 256;  // descriptors; what there are more is held when those have ended

// Whether there are as many descriptors as it takes to read /proc: without them it looks empty.
bool can_look() {
  const base::Fd first(open("/proc", O_PATH | O_CLOEXEC));
  const base::Fd second(open("/proc", O_PATH | O_CLOEXEC));
  return first && second;
}

// We may have been started by a task ourselves.
bool is_ours(const process::ProcessEntry& entry) { return entry.pid == getpid() || entry.session == getsid(0); }

bool has_ended(const base::Fd& held) {
  pollfd ready{.fd = held.get(), .events = POLLIN, .revents = 0};
  return poll(&ready, 1, 0) > 0;
}

}  // namespace

std::vector<process::ProcessEntry> find_leftovers(const Fingerprint& fingerprint) {
  if (fingerprint.boot != process::boot_id()) return {};
  const std::string mark = "DUET_TASK_MARK=" + fingerprint.mark;
  std::vector<process::ProcessEntry> all = process::all_processes();
  std::erase_if(all, is_ours);
  std::set<pid_t> found;
  std::set<pid_t> sessions;
  const auto take = [&](const process::ProcessEntry& entry) {
    if (found.contains(entry.pid) || is_outsider(entry)) return;
    found.insert(entry.pid);
    sessions.insert(entry.session);
  };
  for (const process::ProcessEntry& entry : all) {
    const bool is_main = entry.pid == fingerprint.main && entry.start_ticks == fingerprint.main_ticks;
    if (is_main || process::has_in_environment(entry.pid, mark)) take(entry);
  }
  const std::vector<pid_t> in_cgroup =
      fingerprint.cgroup.empty() ? std::vector<pid_t>() : process::processes_below(fingerprint.cgroup);
  for (const process::ProcessEntry& entry : all) {
    if (std::ranges::find(in_cgroup, entry.pid) != in_cgroup.end()) take(entry);
  }
  for (std::size_t before = 0; before != found.size();) {
    before = found.size();
    for (const process::ProcessEntry& entry : all) {
      if (sessions.contains(entry.session) || found.contains(entry.parent)) take(entry);
    }
  }
  std::erase_if(all,
                [&](const process::ProcessEntry& entry) { return !found.contains(entry.pid) || entry.is_zombie(); });
  return all;
}

Leftovers::Leftovers(transport::Loop& loop, Fingerprint fingerprint, milliseconds grace, std::function<void()> done)
    : loop_(loop), fingerprint_(std::move(fingerprint)), done_(std::move(done)) {
  timer_ = loop_.after(milliseconds(0), [this, grace] {
    kill_after(grace);
    look();
  });
}

void Leftovers::kill_after(milliseconds time) {
  timer_ = loop_.after(time, [this] {
    killing_ = true;
    for (const auto& [key, held] : held_) process::signal_process(held.process, SIGKILL);
    clear_cgroup();
    kill_after(kill_again);
    look();
  });
}

void Leftovers::look() {
  Found found = hold_more();
  for (int looks = 1; looks < most_looks && found == Found::some && held_.empty(); ++looks) {
    found = hold_more();  // those have ended by themselves
  }
  if (!held_.empty()) return;
  if (found != Found::nothing || !clear_cgroup()) {
    look_again_ = loop_.after(look_pause, [this] { look(); });
    return;
  }
  look_again_.cancel();
  timer_.cancel();
  if (!fingerprint_.cgroup.empty()) process::remove_cgroup(fingerprint_.cgroup);
  const auto done = done_;  // which may destroy us
  done();
}

// Processes that fork and end faster than they can be looked at show nowhere else. Whether none is in there any more.
bool Leftovers::clear_cgroup() const {
  if (fingerprint_.cgroup.empty()) return true;
  bool has_some = false;
  bool has_others = false;
  for (const pid_t pid : process::processes_below(fingerprint_.cgroup)) {
    const auto entry = process::read_process(pid);
    const bool is_other = entry && (is_ours(*entry) || is_outsider(*entry));
    (is_other ? has_others : has_some) = true;
  }
  if (has_some && !has_others && killing_) process::kill_cgroup(fingerprint_.cgroup);
  return !has_some;
}

// What is not held already.
Leftovers::Found Leftovers::hold_more() {
  if (!can_look()) return Found::unknown;
  Found found = Found::nothing;
  for (const process::ProcessEntry& entry : find_leftovers(fingerprint_)) {
    const std::pair key(entry.pid, entry.start_ticks);
    if (held_.contains(key)) continue;
    if (found == Found::nothing) found = Found::some;
    base::Fd held = process::hold_process(entry);
    if (!held && !can_look()) found = Found::unknown;
    if (!held) continue;
    if (killing_ || told_.insert(key).second) process::signal_process(held, killing_ ? SIGKILL : SIGTERM);
    if (entry.state == 'T') process::signal_process(held, SIGCONT);
    if (held_.size() >= most_held) continue;
    try {
      transport::Loop::Watch watch = loop_.watch(held.get(), EPOLLIN, *this);
      held_.emplace(key, Held{std::move(held), std::move(watch)});
    } catch (const std::system_error&) {
      found = Found::unknown;
    }
  }
  return found == Found::nothing && !can_look() ? Found::unknown : found;
}

void Leftovers::on_ready(std::uint32_t /*events*/) {
  std::erase_if(held_, [](const auto& each) { return has_ended(each.second.process); });
  if (held_.empty()) look();
}

}  // namespace duet::task
