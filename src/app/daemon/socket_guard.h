#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "app/project/state_folder.h"
#include "duet/base/fd.h"
#include "duet/base/log.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// Notices when files of the state folder are removed or replaced under a running daemon, or the folder itself, and
/// has it looked at a moment later, when whoever removes things is done.
///
/// It waits for the system's notice and does not poll, unless the system has none to give, or as long as a part of
/// `.aiwg/daemon` is a link: where it leads to is not watched.
class SocketGuard final : private transport::Loop::Watcher {
 public:
  struct Limits {
    base::Duration quiet = std::chrono::milliseconds(300);
    base::Duration poll = std::chrono::seconds(2);
  };

  /// `look` is called from the loop; false: it wants to be called again.
  SocketGuard(transport::Loop& loop, base::Log& log, const Project& project, const StateFolder& folder,
              std::function<bool()> look)
      : SocketGuard(loop, log, project, folder, std::move(look), Limits()) {}
  SocketGuard(transport::Loop& loop, base::Log& log, const Project& project, const StateFolder& folder,
              std::function<bool()> look, Limits limits);
  SocketGuard(const SocketGuard&) = delete;
  SocketGuard& operator=(const SocketGuard&) = delete;

  /// The socket is not in the state folder but at `path`, among files of others.
  void watch_socket(const std::string& path);

  /// Why it has to poll; empty if it has not.
  const std::string& problem() const { return problem_; }

 private:
  void on_ready(std::uint32_t events) override;
  bool watch_folders(const Project& project, const StateFolder& folder);
  bool concerns_us(std::string_view notices) const;
  bool watch_socket_folder();
  bool is_linked() const;
  void look();
  void poll_because(const std::string& what);
  void look_after(base::Duration wait);

  transport::Loop& loop_;
  base::Log& log_;
  std::function<bool()> look_;
  Limits limits_;
  base::Fd notices_;
  transport::Loop::Watch watch_;  // of the notices
  base::Fd project_;
  bool elsewhere_;          // the state folder is not in the project
  int socket_folder_ = -1;  // the watch on a folder that is not ours alone
  std::string socket_path_;
  std::string problem_;
  transport::Loop::Timer timer_;
  bool looks_soon_ = false;  // the timer is for a change, and soon
};

}  // namespace duet::app
