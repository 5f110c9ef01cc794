#pragma once

#include <unistd.h>

#include <functional>

#include "duet/transport/loop.h"

namespace duet::app {

/// Notices that nobody reads what a command prints, while it waits for more to print.
///
/// Pipes, sockets and terminals tell; a file has no reader, and nothing is noticed. It lives as long as the loop is
/// turned for the command.
class ReaderWatch final : transport::Loop::Watcher {
 public:
  using OnGone = std::function<void()>;

  explicit ReaderWatch(transport::Loop& loop, int output = STDOUT_FILENO, OnGone on_gone = end_without_reader);
  ReaderWatch(const ReaderWatch&) = delete;
  ReaderWatch& operator=(const ReaderWatch&) = delete;

  /// Ends the program as the next write would: by SIGPIPE, or if that is ignored by a std::system_error.
  static void end_without_reader();

 private:
  void on_ready(std::uint32_t events) override;

  OnGone on_gone_;
  transport::Loop::Watch watch_;
};

}  // namespace duet::app
