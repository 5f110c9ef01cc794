#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/clock.h"
#include "simulate/disk.h"
#include "simulate/disk_vfs.h"
#include "simulate/random.h"

struct stat;

namespace duet::simulate {

/// Time of a simulated machine: one clock that never jumps, and one on the wall that may.
class MachineClock final : public base::Clock {
 public:
  base::TimePoint now() const override { return now_; }
  base::UtcTime utc() const override { return utc_; }
  void advance(base::Duration step) {
    now_ += step;
    utc_ += std::chrono::duration_cast<base::UtcTime::duration>(step);
  }
  void set_wall(base::Duration by) { utc_ += std::chrono::duration_cast<base::UtcTime::duration>(by); }

 private:
  void doze(std::unique_lock<std::mutex>& /*lock*/, std::condition_variable& /*changed*/,
            base::TimePoint /*deadline*/) override {}

  base::TimePoint now_{std::chrono::hours(1)};
  base::UtcTime utc_{std::chrono::seconds(1'800'000'000)};
};

/// What the disk does wrong at the moment.
struct Trouble {
  bool full = false;                ///< ENOSPC for whatever needs room
  bool read_only = false;           ///< EROFS for every change
  bool syncs_fail = false;          ///< EIO
  bool writes_fail = false;         ///< EIO
  bool out_of_descriptors = false;  ///< EMFILE
  bool any() const { return full || read_only || syncs_fail || writes_fail || out_of_descriptors; }
};

/// A program that runs on the machine: whose calls it makes, and whose descriptors it has.
struct Process {
  std::string name;
  bool dead = false;                             ///< what it still does has no effect
  std::optional<std::uint64_t> dies_after = {};  ///< so many more changes of the disk
  bool finishes_last_change = false;             ///< then one more happens, and nothing that comes after it
};

/// The machine on which everything runs: a disk, a clock, processes, and descriptors of files.
///
/// system_calls.cpp passes calls about its descriptors on to it; they answer as the kernel does, -1 and errno. At most
/// one machine at a time in a process, for one thread.
class Machine {
 public:
  static constexpr int first_descriptor = 1 << 24;

  explicit Machine(std::uint64_t seed);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  static Machine* current() { return current_; }

  MachineClock& clock() { return clock_; }
  Disk& disk() { return disk_; }
  Random& chance() { return chance_; }
  Trouble trouble;
  /// Hears of every change of the disk, also of those that fail.
  std::function<void(Disk::Step step, std::string_view name, int error)> on_change;

  /// Whose calls are made while it lives.
  class As {
   public:
    As(Machine& machine, Process& process) : machine_(machine), before_(machine.process_) {
      machine.process_ = &process;
    }
    As(const As&) = delete;
    As& operator=(const As&) = delete;
    ~As() { machine_.process_ = before_; }

   private:
    Machine& machine_;
    Process* before_;
  };
  Process* process() const { return process_; }
  /// Closes what it has open.
  void end(Process& process);
  /// All descriptors go, and what was not synced may.
  void cut_power();
  /// How many changes of the disk there were.
  std::uint64_t changes() const { return changes_; }

  int open_root();
  /// Another descriptor of the same description, for another process.
  int give(int descriptor, Process& to);
  NodePointer node(int descriptor) const;
  /// A file of the kernel that tells which boot of the machine this is; read with read_on().
  int open_boot_id();
  ssize_t read_on(int descriptor, void* into, std::size_t count);
  const std::string& boot() const { return boot_; }

  int open_at(int folder, const char* name, int flags);
  int close(int descriptor);
  int duplicate(int descriptor);
  ssize_t read_at(int descriptor, void* into, std::size_t count, std::uint64_t offset);
  ssize_t write_at(int descriptor, const void* bytes, std::size_t count, std::uint64_t offset);
  int sync(int descriptor);
  int truncate(int descriptor, std::uint64_t size);
  int lock(int descriptor, int operation);
  int status(int descriptor, struct stat& out) const;
  int status_at(int folder, const char* name, struct stat& out) const;
  int remove_at(int folder, const char* name);
  int rename_at(int folder, const char* from, const char* to);
  int make_folder_at(int folder, const char* name);
  /// The names in a folder.
  std::vector<std::string> list(int descriptor) const;

 private:
  struct Description {
    NodePointer node;
    std::string name;
    std::uint64_t place = 0;
  };
  struct Descriptor {
    std::shared_ptr<Description> description;
    Process* owner = nullptr;
  };

  void note_boot();
  int fault(Disk::Step step, std::string_view name);
  int error_of(Disk::Step step);
  int add(std::shared_ptr<Description> description, Process* owner);
  Descriptor* find(int descriptor);
  const Descriptor* find(int descriptor) const;

  static Machine* current_;  // NOLINT(readability-identifier-naming): a member like the others
  MachineClock clock_;
  Disk disk_;
  Random chance_;
  DiskVfs vfs_;
  Process* process_ = nullptr;
  std::uint64_t changes_ = 0;
  std::uint64_t boots_ = 0;
  std::string boot_;
  int last_descriptor_ = first_descriptor;
  std::map<int, Descriptor> descriptors_;
  std::map<const Node*, std::weak_ptr<Description>> locks_;
};

}  // namespace duet::simulate
