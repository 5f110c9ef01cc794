#pragma once

#include <dirent.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "automation/rule.h"
#include "automation/watch_scope.h"
#include "duet/base/clock.h"
#include "duet/base/fd.h"
#include "duet/transport/loop.h"

namespace duet::automation {

struct FileChange {
  enum class Type : std::uint8_t { create, modify, remove };
  std::string path;  ///< from the project root; bytes, not always UTF-8
  Type type;
  base::TimePoint seen;  ///< when the kernel last said something of it
};

struct WatchLimits {
  std::chrono::milliseconds quiet{200};          ///< of quiet, before changes are told
  std::chrono::milliseconds burst_quiet{1'000};  ///< the same when many files change: whoever does that may pause
  std::size_t burst = 50;                        ///< files that are many
  std::chrono::milliseconds patience{10'000};    ///< with files that never come to rest
  std::chrono::microseconds slice{2'000};        ///< of work, before the loop gets to do something else
  std::size_t entries_a_slice = 1'000;           ///< of folders, likewise
  std::chrono::milliseconds retry{1'000};        ///< after a folder could not be watched, for want of something
};

/// Tells which files of a project were created, modified or deleted, once they have come to rest: the difference
/// between before and after, so that a file written beside and renamed into its place was modified, and one that came
/// and went was not there.
///
/// It follows folders as they come and go, but no symbolic links, nor does it tell of them: editors lock a file with
/// one while somebody types. A folder that is ignored is neither read nor watched. Changes are never missed: a new
/// folder is read after it is watched, and when the kernel's queue overflows everything is read again. Whatever there
/// is to do, it does in short slices, between which the loop turns. What is not watched, not yet or for want of
/// descriptors or the like, is named by problem(), and is watched as soon as it can be. The root's descriptor is only
/// used, never its path, and must stay open. Throws nothing. For the loop's thread.
class FileWatch final : transport::Loop::Watcher {
 public:
  struct Actions {
    WatchScope::Wanted wanted;                       ///< whether anybody asks for this file
    std::function<void(const FileChange&)> changed;  ///< one of those that have come to rest together
    std::function<void()> settled;                   ///< that was the last of them
    std::function<void(const std::string& text)> problem = [](const std::string&) {};  ///< of a folder that came up
  };

  /// Reads the tree, or a slice of it if it is large: what changes in a folder after that was read is told.
  FileWatch(transport::Loop& loop, int root, const WatchSettings& settings, Actions actions, WatchLimits limits = {});
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;
  ~FileWatch();

  /// Watches what these settings say, from now on or from when it has read all that it was to read before. What
  /// changes meanwhile, and both ask for, is told.
  void change(const WatchSettings& settings, WatchScope::Wanted wanted);

  /// Hears what the kernel has to say by now.
  void drain();

  /// What is not watched, and why; empty if everything is.
  std::string problem() const;
  /// Why a file is not told of, as far as folders have been read; none if it is.
  std::optional<std::string> why_not(std::string_view file) const { return scope_.why_not(file); }

 private:
  struct Signature {
    std::uint64_t inode;
    std::int64_t size;
    std::int64_t modified_ns;
    bool operator==(const Signature&) const = default;
  };
  struct Touch {
    base::TimePoint seen;
    bool written = false;  // else only looked at: a change if the signature is another
  };
  using Touches = std::map<std::string, Touch>;

  /// What the kernel said at once.
  struct Report {
    std::vector<char> bytes;
    base::TimePoint seen;
    std::size_t taken = 0;
  };
  struct Said {
    int watch;
    std::uint32_t mask;
    std::string name;
    base::TimePoint seen;
  };

  /// What the files of a folder are that nobody knows yet: new; new if they would have been told of before; old.
  enum class Strangers : std::uint8_t { are_new, may_be_new, are_old };
  /// Something that may take longer than a slice. One follows the other.
  struct Chore {
    enum class Kind : std::uint8_t {
      read,     ///< a folder
      forget,   ///< a folder that has gone, and all below
      compare,  ///< all files with what they were
      prune     ///< what is out of the scope
    };
    Kind kind = Kind::read;
    std::string folder = {};
    Strangers strangers = Strangers::are_new;
    base::TimePoint seen = {};
    std::optional<std::string> at = {};  ///< how far it has come in a map
    int maps_done = 0;
  };
  struct Listing {
    Chore of;
    std::unique_ptr<DIR, int (*)(DIR*)> names{nullptr, closedir};
  };
  struct Blocked {
    int error = 0;
    Strangers strangers = Strangers::are_new;
  };
  using BlockedFolders = std::map<std::string, Blocked>;

  // Work in slices: file_watch.cpp.
  void work();
  void work_soon();
  bool step(std::size_t& entries);
  void rest();
  bool is_reading() const { return listing_.names || !chores_.empty(); }

  // What the kernel says: file_watch.cpp.
  void on_ready(std::uint32_t events) override;
  void open_queue();
  void close_queue();
  Said next_said();
  void take(const Said& said);
  void take_folder(const Said& said, const std::string& path);
  void read_blocked(const std::string& within);
  void start_over();

  // When it is quiet: file_watch.cpp.
  void touch(const std::string& path, bool written, base::TimePoint seen);
  void stir(base::TimePoint seen);
  base::TimePoint quiet_at() const;
  void look_whether_quiet();
  void look_again();
  void tell_one();
  void end_telling();
  std::optional<FileChange::Type> compare(const std::string& path, bool written, const std::optional<Signature>& now);

  // Folders and chores: file_watch_folders.cpp.
  void apply(WatchScope scope);
  void begin(WatchScope scope, const std::set<std::string>& folders);
  void read_later(std::string folder, Strangers strangers);
  void begin_chore();
  bool forget_some(Chore& chore);
  bool compare_some(Chore& chore);
  bool prune_some(Chore& chore);
  bool sweep(Chore& chore);
  void read_name();
  bool begin_listing(Chore folder);
  void read_entry(int folder_fd, const std::string& path, const char* name, unsigned char type);
  Strangers oldest_strangers() const;
  void all_is_read();
  bool is_news(const std::string& file) const;
  bool add_watch(int folder_fd, const std::string& folder);
  static bool can_pass(const BlockedFolders::value_type& folder);
  bool block(const Chore& folder, int error);
  void try_again();
  void unwatch(const std::string& folder, int watch);
  void forget_tree(const std::string& folder, base::TimePoint seen);
  base::Fd open_folder(std::string_view folder, int access) const;
  static std::optional<Signature> signature_of(int folder_fd, const char* name);

  // What git ignores: file_watch_folders.cpp.
  void read_ignores(int folder_fd, const std::string& folder, bool is_new);
  void read_ignores_again();
  WatchScope scope_of(const WatchSettings& settings, WatchScope::Wanted wanted) const;

  transport::Loop& loop_;
  int root_;
  Actions actions_;
  WatchLimits limits_;
  WatchScope scope_;
  std::optional<WatchScope> before_;  // while what is new in the scope is read
  std::optional<WatchScope> next_;    // for when all is read

  base::Fd queue_;
  transport::Loop::Watch queue_watch_;
  int queue_error_ = 0;  // why there is none
  std::deque<Report> reports_;
  std::size_t reported_bytes_ = 0;
  std::unordered_map<int, std::string> folders_;  // by watch
  std::map<std::string, int, std::less<>> watches_;
  std::map<std::string, int, std::less<>> lost_watches_;  // of folders that are read again
  std::map<std::string, Signature, std::less<>> files_;   // as they were told last
  std::deque<Chore> chores_;
  Listing listing_;
  BlockedFolders blocked_;  // those that could not be watched
  bool reported_ = false;
  std::set<std::string> stale_;  // folders whose .gitignore may be another
  transport::Loop::Timer working_;
  transport::Loop::Timer retrying_;

  Touches touched_;
  base::TimePoint first_touch_;
  base::TimePoint last_touch_;
  transport::Loop::Timer quiet_timer_;

  bool is_telling_ = false;
  Touches telling_;
  Touches unseen_;           // that could not be looked at
  bool has_told_ = false;    // one at least
  std::string told_folder_;  // that is open, unless it is the root
  base::Fd told_fd_;
};

/// `file.create` and the like.
std::string_view name_of(FileChange::Type type);

}  // namespace duet::automation
