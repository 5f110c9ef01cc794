#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "automation/glob.h"
#include "automation/rule.h"
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
  std::chrono::milliseconds settle{200};          ///< of quiet, before changes are told
  std::chrono::milliseconds burst_settle{1'000};  ///< the same when many files change: whoever does that may pause
  std::size_t burst = 50;                         ///< files that are many
  std::chrono::milliseconds patience{10'000};     ///< with files that never come to rest
  std::size_t folders_a_turn = 50;                ///< that are read before the loop gets to do something else
};

/// Tells which files of a project were created, modified or deleted, once they have come to rest: the difference
/// between before and after, so that a file written beside and renamed into its place was modified, and one that came
/// and went was not there.
///
/// It follows folders as they come and go, but no symbolic links; a link is told of as a file. Changes are never
/// missed: a new folder is read after it is watched, and when the kernel's queue overflows everything is read again.
/// What cannot be watched is named by problem(). The root's descriptor is only used, never its path, and must stay
/// open. For the loop's thread.
class FileWatch final : transport::Loop::Watcher {
 public:
  struct Actions {
    std::function<bool(std::string_view path)> wanted;  ///< whether anybody asks for this file
    std::function<void(std::vector<FileChange>)> changed;
    std::function<void(const std::string& text)> problem = [](const std::string&) {};  ///< that came up
  };

  /// Reads the whole tree: every change after this is told.
  FileWatch(transport::Loop& loop, int root, const WatchSettings& settings, Actions actions, WatchLimits limits = {});
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;
  ~FileWatch();

  /// Takes what the kernel has to say by now.
  void drain();

  /// Tells at once what it knows, settled or not.
  void finish();

  /// What is not watched, and why; empty if everything is.
  const std::string& problem() const { return problem_; }

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

  void on_ready(std::uint32_t events) override;
  void open_queue();
  void close_queue();
  void take(const inotify_event& event, std::string_view name);
  void take_folder(std::uint32_t mask, const std::string& path);
  void start_over();

  bool is_followed(std::string_view folder) const;
  bool is_told(std::string_view file) const;

  void read_later(std::string folder);
  void read_folders();
  void read_folder(const std::string& folder, bool silent);
  void read_entry(int folder_fd, const std::string& path, const char* name, unsigned char type, bool silent);
  bool add_watch(int folder_fd, const std::string& folder);
  void forget_tree(const std::string& folder);
  base::Fd open_folder(std::string_view folder) const;
  static std::optional<Signature> signature_of(int folder_fd, const char* name);

  void touch(const std::string& path, bool written);
  base::TimePoint quiet_at() const;
  void look_whether_quiet();
  void tell();
  void report(const std::string& text);

  transport::Loop& loop_;
  int root_;
  std::vector<std::string> paths_;
  IgnoreList ignored_;
  Actions actions_;
  WatchLimits limits_;
  std::string problem_;

  base::Fd queue_;
  std::unordered_map<int, std::string> folders_;  // by watch
  std::map<std::string, int, std::less<>> watches_;
  std::map<std::string, Signature, std::less<>> files_;  // as they were told last
  std::deque<std::string> unread_;                       // folders
  std::optional<transport::Loop::Timer> reading_;

  std::map<std::string, Touch> touched_;
  base::TimePoint first_touch_;
  base::TimePoint last_touch_;
  std::optional<transport::Loop::Timer> settling_;
};

/// `file.create` and the like.
std::string_view name_of(FileChange::Type type);

}  // namespace duet::automation
