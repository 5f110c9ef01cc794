#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bridge/guard.h"
#include "duet/transport/loop.h"
#include "process/launch.h"
#include "process/piped_child.h"
#include "process/process_tree.h"

namespace duet::bridge {

/// How this program is run again as a guard.
struct GuardProgram {
  int executable = -1;  ///< this program, opened; the caller's
  std::vector<std::string> arguments = {"duet-rpc", std::string(guard_argument)};
};

/// A language server's process under its guard (guard.h). It knows nothing of the protocol.
///
/// After construction there is one of started and not_started; after started, ended; and at the end of all, gone: no
/// process of the tree is left. All are told from the loop. Destruction before that kills the tree and waits for it. A
/// guard that does not do its work (the server may have stopped it) is helped on after 3 s, and done without after 4.
/// For the loop's thread only.
class ServerProcess {
 public:
  struct Events {
    std::function<void()> started;
    std::function<void(process::LaunchError::Cause, std::string_view text)> not_started;
    std::function<void(process::ExitStatus)> ended;
    std::function<void()> gone;  ///< may destroy this
  };

  /// `launch` names the server's command, environment and folder. Throws process::LaunchError, std::system_error.
  ServerProcess(transport::Loop& loop, const GuardProgram& guard, process::Launch launch, Events events);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  std::unique_ptr<transport::Channel> take_channel() { return child_->take_channel(); }
  std::string error_output() { return child_->error_output(); }
  pid_t pid() const { return pid_; }                 ///< of the server; 0 until it has started
  pid_t guard_pid() const { return child_->pid(); }  ///< the root of the tree
  /// Whether the server has started and ended, though the guard may not have told its end yet.
  bool server_has_ended() const;

  /// TERM to the whole tree, KILL to what is left after 2 s.
  void end();

 private:
  struct Control final : transport::Loop::Watcher {
    explicit Control(ServerProcess& owner) : process(owner) {}
    void on_ready(std::uint32_t) override { process.hear(); }
    ServerProcess& process;
  };

  void order(std::string_view word);
  void expect_end();
  void help_guard();
  void do_without_guard();
  void hear();
  void take(std::string_view packet);
  void guard_has_ended();
  void stop_hearing();

  transport::Loop& loop_;
  Events events_;
  base::Fd control_;
  bool hearing_ = false;
  Control watcher_{*this};
  transport::Loop::Watch watch_;
  transport::Loop::Timer end_timer_;
  std::unique_ptr<process::PipedChild> child_;
  enum class Phase : std::uint8_t { starting, running, ended };
  Phase phase_ = Phase::starting;
  pid_t pid_ = 0;
  std::optional<process::ProcessEntry> server_;  // as it was when its start was heard of, if it was still there
};

}  // namespace duet::bridge
