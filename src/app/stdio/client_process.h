#pragma once

#include <cstdint>
#include <functional>

#include "duet/base/fd.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// Watches the process that `initialize` names and tells when it has ended, so that no daemon stays behind when its
/// client dies while somebody else holds the pipe open. One process at a time. For the loop's thread only.
class ClientProcess final : private transport::Loop::Watcher {
 public:
  ClientProcess(transport::Loop& loop, std::function<void()> on_ended);
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;

  /// Watches this process instead of the one before. False: there is none of that number, and nobody is watched; a
  /// client in another container sends such numbers.
  bool watch(std::int64_t pid);

 private:
  void on_ready(std::uint32_t events) override;
  void forget();

  transport::Loop& loop_;
  std::function<void()> on_ended_;
  base::Fd process_;
  transport::Loop::Watch watch_;
};

}  // namespace duet::app
