#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "duet/base/fd.h"
#include "duet/transport/channel.h"
#include "duet/transport/loop.h"
#include "process/launch.h"

namespace duet::process {

/// A program that runs with pipes to us: its stdout and stdin are a channel, its stderr is read for as long as anybody
/// holds it, and its end is told once.
///
/// Of stderr only the last bytes are kept. The channel is taken by whoever speaks to the program and may outlive it.
/// A child that still runs when this is destroyed is killed, group and all, and reaped. For the loop's thread only.
class PipedChild {
 public:
  static constexpr std::size_t kept_of_stderr = 8192;
  using OnEnded = std::function<void(ExitStatus)>;

  /// `launch.standard` is filled in here. Throws LaunchError, std::system_error.
  PipedChild(transport::Loop& loop, Launch launch, OnEnded on_ended);
  PipedChild(const PipedChild&) = delete;
  PipedChild& operator=(const PipedChild&) = delete;
  ~PipedChild();

  std::unique_ptr<transport::Channel> take_channel() { return std::move(channel_); }

  pid_t pid() const { return process_.pid; }
  int pidfd() const { return process_.pidfd.get(); }
  bool is_running() const { return running_; }
  /// To its process group, while it runs.
  void signal_group(int signal);

  /// The end of what it wrote to stderr, as far as it is known now.
  std::string error_output();

 private:
  struct Ending final : transport::Loop::Watcher {
    explicit Ending(PipedChild& owner) : child(owner) {}
    void on_ready(std::uint32_t) override { child.reap(); }
    PipedChild& child;
  };
  struct Drain final : transport::Loop::Watcher {
    explicit Drain(PipedChild& owner) : child(owner) {}
    void on_ready(std::uint32_t) override { child.drain_stderr(); }
    PipedChild& child;
  };

  PipedChild(transport::Loop& loop, OnEnded on_ended) : loop_(loop), on_ended_(std::move(on_ended)) {}

  void reap();
  void drain_stderr();
  std::size_t read_stderr();

  transport::Loop& loop_;
  OnEnded on_ended_;
  base::Fd stderr_;
  transport::Loop::Timer stderr_pause_;
  std::string tail_;
  std::unique_ptr<transport::Channel> channel_;
  Child process_;
  bool running_ = false;
  Ending ending_{*this};
  Drain drain_{*this};
  transport::Loop::Watch end_watch_;
  transport::Loop::Watch stderr_watch_;
};

}  // namespace duet::process
