#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/fd.h"

namespace duet::process {

/// A process as /proc shows it. A pid is used again, a pid with its start is not.
struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  pid_t session = 0;
  char state = '?';
  std::uint64_t start_ticks = 0;

  bool is_zombie() const { return state == 'Z' || state == 'X'; }
};

std::optional<ProcessEntry> read_process(pid_t pid);
std::vector<ProcessEntry> all_processes();
/// Whether a process, with all that descends from it, is to be left out.
using Spared = std::function<bool(const ProcessEntry&)>;

/// The processes that descend from `root`, without itself; parents stand before their children. One that is forked
/// meanwhile may be missing.
std::vector<ProcessEntry> descendants(pid_t root, const Spared& spared = {});

/// Whether the process was started with `assignment` (`NAME=value`) in its environment; false if that is not ours to
/// see. One that is being executed is waited for, at most a second.
bool has_in_environment(pid_t pid, std::string_view assignment);
/// Resident memory in bytes; 0 if there is no such process. Pages that processes share count for each.
std::uint64_t resident_memory(pid_t pid);
/// Which boot of the machine this is.
std::string boot_id();

/// A handle of exactly this process, or none if it has ended.
base::Fd hold_process(const ProcessEntry& entry);
void signal_process(const base::Fd& held, int signal);
/// Kills the process group that `leader` made, also when that one has ended; nobody if its number is another's by now.
void kill_group(const ProcessEntry& leader);

/// Kills what descends from `root`, a child of ours that is not reaped, but not itself. What other sessions have in
/// the same process groups goes too. One that is forked meanwhile in a session of its own may be missed.
void kill_descendants(pid_t root);

/// Sends a signal to all descendants of this process, from the top down. SIGKILL goes to their process groups as well,
/// which catches those that fork meanwhile. A stopped process is continued. Who is missed because it was born in
/// another session just now has become our child once its parent is dead: until waitpid says ECHILD, kill again.
void signal_descendants(int signal, const Spared& spared = {});

}  // namespace duet::process
