#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/fd.h"
#include "duet/base/log.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// Notices when files are written, replaced, made or removed, and tells so a moment later, once for many changes.
///
/// The files need not exist, nor their folders: the nearest folder that does is watched until there is more. A file
/// that is a link is watched where the link stands and at each step to where it leads, if nothing is there, too. It
/// waits for the system's notice and does not poll, unless the system has none to give, as for a file system of another
/// machine. What is told is that something happened to a file or to the folders that lead to it; who is told reads the
/// file and sees. Links among those folders are followed when the watch is set up: that one of them, or a folder
/// further up, becomes another one is not noticed. For the loop's thread only.
class SettingsWatch final : private transport::Loop::Watcher {
 public:
  struct Limits {
    base::Duration quiet = std::chrono::milliseconds(100);  ///< so long nothing more has come
    base::Duration most = std::chrono::seconds(1);          ///< after the first change
    base::Duration poll = std::chrono::seconds(2);
  };

  /// Paths are absolute. `changed` is called from the loop.
  SettingsWatch(transport::Loop& loop, base::Log& log, std::vector<std::string> files, std::function<void()> changed)
      : SettingsWatch(loop, log, std::move(files), std::move(changed), Limits()) {}
  SettingsWatch(transport::Loop& loop, base::Log& log, std::vector<std::string> files, std::function<void()> changed,
                Limits limits);
  SettingsWatch(const SettingsWatch&) = delete;
  SettingsWatch& operator=(const SettingsWatch&) = delete;

 private:
  /// What makes a file another one, for where it must be looked at; nothing if there is none. Times are too coarse to
  /// trust in where there are notices.
  struct Fingerprint {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size = 0;
    mode_t mode = 0;
    uid_t owner = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Fingerprint&) const = default;
  };
  using Fingerprints = std::vector<std::optional<Fingerprint>>;

  void on_ready(std::uint32_t events) override;
  bool concerns_us(std::string_view notices) const;
  Fingerprints fingerprints() const;
  bool watch_notices();
  bool watch_folders();
  bool watch_folder_of(std::string path, std::map<int, std::set<std::string>>& folders);
  void poll_because();
  void look_soon();
  void look();

  transport::Loop& loop_;
  base::Log& log_;
  std::vector<std::string> files_;
  std::function<void()> changed_;
  Limits limits_;
  base::Fd notices_;
  transport::Loop::Watch watch_;                  // of the notices
  std::map<int, std::set<std::string>> folders_;  // the names in each that matter
  Fingerprints seen_;                             // while it polls
  std::optional<base::TimePoint> first_change_;
  transport::Loop::Timer timer_;
};

}  // namespace duet::app
