#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "duet/base/fd.h"
#include "process/tree_usage.h"

namespace duet::process {

/// What a tree of processes may use at most; what is not given has no bound.
struct Limits {
  std::optional<std::uint64_t> memory = {};     ///< bytes, in RAM; there is no swap beside them
  std::optional<std::uint64_t> processes = {};  ///< at once, each thread counted
  std::optional<double> cpu = {};               ///< how many cores' worth of time

  static constexpr std::uint64_t least_memory = std::uint64_t{4} << 20U;  ///< what it takes to start anything
  static constexpr double least_cpu = 0.01;

  bool any() const { return memory || processes || cpu; }
  bool operator==(const Limits&) const = default;
};

/// Of each the smaller one.
Limits both(const Limits& one, const Limits& other);

/// The cgroup (version 2) that was handed over to this process to divide: by systemd with `Delegate=yes`, say. Limits
/// hold for a cgroup, so each tree that has some gets one below this.
///
/// A cgroup that is divided holds no processes itself. So this process moves into a leaf, `leaf_name`, where those that
/// it starts begin. Controllers are not switched on before somebody needs them.
class CgroupHome {
 public:
  static constexpr const char* leaf_name = "duet-rpc-daemon";

  /// Moves this process if it must. The error says what is missing, and what would help.
  static tl::expected<CgroupHome, std::string> find();
  /// The same for a process that is in the cgroup with this folder, as far as the files there tell.
  static tl::expected<CgroupHome, std::string> find_at(const std::string& folder);

  const std::string& folder() const { return folder_; }
  /// Sees to it that cgroups below can be given such limits; or says why not. `swaps`: where the kernel lists what it
  /// swaps to.
  tl::expected<void, std::string> provide_for(const Limits& limits, const std::string& swaps = "/proc/swaps") const;
  /// Which limits could be provided for, by name: memory, processes, cpu. Nothing is switched on.
  std::vector<std::string> offered() const;

 private:
  explicit CgroupHome(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
};

/// The cgroup of one tree, with its limits, and those that the tree makes below it. For a process that starts the tree
/// and stays outside of it.
class Cgroup {
 public:
  /// Makes it. Throws std::system_error.
  Cgroup(std::string folder, const Limits& limits);
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  /// Removes it, if nobody is in it any more.
  ~Cgroup();

  /// What Launch::cgroup asks for. Throws std::system_error.
  base::Fd entrance() const;

  /// As of now; of what the kernel does not count there is none. Memory is counted for a tree with a limit for it only:
  /// for another the kernel may have begun in the middle, when the controller was switched on for somebody else.
  struct Counts {
    std::optional<std::chrono::microseconds> cpu = {};
    std::optional<std::uint64_t> max_memory = {};
    std::uint64_t killed_for_memory = 0;  ///< processes, since the tree met its own limit
  };
  Counts counts() const;
  std::vector<pid_t> processes() const;
  void kill_all() const;

 private:
  void write(const char* file, const std::string& value) const;

  std::string folder_;
};

/// Those in the cgroup of that folder and below; none if there is no such.
std::vector<pid_t> processes_below(const std::string& cgroup);
/// All of them at once, also those that fork meanwhile.
void kill_cgroup(const std::string& cgroup);
/// With those below. One that somebody is in stays.
void remove_cgroup(const std::string& cgroup);

/// For a process that was started in a Cgroup and is no part of that tree: it moves into the leaf of the CgroupHome
/// that the tree's is in, so that neither the limits nor the end of the tree are its own. Nothing happens anywhere
/// else.
void leave_cgroup_of_tree();
/// The same for a process that is in the cgroup with this folder.
void leave_cgroup_of_tree(const std::string& folder);

}  // namespace duet::process
