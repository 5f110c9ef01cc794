#pragma once

#include <functional>
#include <initializer_list>

#include "duet/base/fd.h"
#include "duet/transport/loop.h"

namespace duet::process {

/// Takes signals from the process and hands them to the loop. Made before any thread is started.
class Signals final : private transport::Loop::Watcher {
 public:
  Signals(transport::Loop& loop, std::initializer_list<int> signals, std::function<void(int)> on_signal);
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  void on_ready(std::uint32_t events) override;

  std::function<void(int)> on_signal_;
  base::Fd signals_;
  transport::Loop::Watch watch_;
};

}  // namespace duet::process
