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
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "automation/rule.h"
#include "automation/watch_scope.h"
#include "duet/base/clock.h"
#include "duet/base/fd.h"
#include "duet/transport/loop.h"

struct inotify_event;

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
  std::size_t entries_a_turn = 1'000;      ///< of folders, that are read before the loop gets to do something else
  std::chrono::milliseconds retry{1'000};  ///< after a folder could not be watched, for want of something
};

/// Tells which files of a project were created, modified or deleted, once they have come to rest: the difference
/// between before and after, so that a file written beside and renamed into its place was modified, and one that came
/// and went was not there.
///
/// It follows folders as they come and go, but no symbolic links; a link is told of as a file. Changes are never
/// missed: a new folder is read after it is watched, and when the kernel's queue overflows everything is read again.
/// A large tree is read in portions. What is not watched, not yet or for want of descriptors or the like, is named by
/// problem(), and is watched as soon as it can be. The root's descriptor is only used, never its path, and must stay
/// open. Throws nothing. For the loop's thread.
class FileWatch final : transport::Loop::Watcher {
 public:
  struct Actions {
    WatchScope::Wanted wanted;  ///< whether anybody asks for this file
    std::function<void(std::vector<FileChange>)> changed;
    std::function<void(const std::string& text)> problem = [](const std::string&) {};  ///< of a folder that came up
  };

  /// Reads the tree, or its first portion if it is large: what changes in a folder after that was read is told.
  FileWatch(transport::Loop& loop, int root, const WatchSettings& settings, Actions actions, WatchLimits limits = {});
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;
  ~FileWatch();

  /// Watches what these settings say, from now on or from when it has read all that it was to read before. What
  /// changes meanwhile, and both ask for, is told.
  void change(const WatchSettings& settings, WatchScope::Wanted wanted);

  /// Takes what the kernel has to say by now.
  void drain();

  /// What is not watched, and why; empty if everything is.
  std::string problem() const;

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

  /// What the files of a folder are that nobody knows yet: new; new if they would have been told of before; old.
  enum class Strangers : std::uint8_t { are_new, may_be_new, are_old };
  struct Unread {
    std::string folder;
    Strangers strangers = Strangers::are_new;
  };
  struct Listing {
    Unread of;
    std::unique_ptr<DIR, int (*)(DIR*)> names{nullptr, closedir};
  };
  struct Blocked {
    int error = 0;
    Strangers strangers = Strangers::are_new;
  };

  using BlockedFolders = std::map<std::string, Blocked>;

  void on_ready(std::uint32_t events) override;
  void open_queue();
  void close_queue();
  void take(const inotify_event& event, std::string_view name);
  void take_folder(std::uint32_t mask, const std::string& path);
  void read_blocked(const std::string& within);
  void start_over();
  void apply(WatchScope scope);

  void read_later(std::string folder, Strangers strangers);
  void read_portion();
  bool begin_listing(Unread folder);
  void read_entry(int folder_fd, const std::string& path, const char* name, unsigned char type);
  bool is_reading() const { return listing_.names || !unread_.empty(); }
  Strangers oldest_strangers() const;
  void all_is_read();
  bool is_news(const std::string& file) const;
  bool add_watch(int folder_fd, const std::string& folder);
  static bool can_pass(const BlockedFolders::value_type& folder);
  bool block(const Unread& folder, int error);
  void try_again();
  void unwatch(const std::string& folder, int watch);
  void forget_tree(const std::string& folder);
  base::Fd open_folder(std::string_view folder, int access) const;
  static std::optional<Signature> signature_of(int folder_fd, const char* name);

  void touch(const std::string& path, bool written);
  base::TimePoint quiet_at() const;
  void look_whether_quiet();
  void look_again(std::map<std::string, Touch> touched);
  void tell();

  transport::Loop& loop_;
  int root_;
  Actions actions_;
  WatchLimits limits_;
  WatchScope scope_;
  std::optional<WatchScope> before_;  // while what is new in the scope is read
  std::optional<WatchScope> next_;    // for when all is read

  base::Fd queue_;
  transport::Loop::Watch queue_watch_;
  int queue_error_ = 0;                           // why there is none
  std::unordered_map<int, std::string> folders_;  // by watch
  std::map<std::string, int, std::less<>> watches_;
  std::map<std::string, Signature, std::less<>> files_;  // as they were told last
  std::deque<Unread> unread_;
  Listing listing_;
  BlockedFolders blocked_;  // those that could not be watched
  bool reported_ = false;
  transport::Loop::Timer reading_;
  transport::Loop::Timer retrying_;

  std::map<std::string, Touch> touched_;
  base::TimePoint first_touch_;
  base::TimePoint last_touch_;
  transport::Loop::Timer quiet_timer_;
};

/// `file.create` and the like.
std::string_view name_of(FileChange::Type type);

}  // namespace duet::automation
