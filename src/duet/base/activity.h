#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>

#include "duet/api.h"

namespace duet::base {

/// What a thread is at, for whoever has to tell of a defect, a slow turn or a crash: two stores a callback, nothing is
/// copied or freed. It points at what lives as long as the program, or as the table of methods.
struct Activity {
  const std::type_info* callback = nullptr;  ///< the watcher that was called last, or the function of the task
  std::string_view method = {};              ///< of the request that was handled last, in that call
};

/// Of this thread. A signal handler may read it.
inline constinit thread_local Activity activity;

/// Writes `app::SocketGuard::look_after, daemon.status` as far as there is room, and returns how many bytes. Safe in a
/// signal handler.
DUET_API std::size_t write_text(const Activity& what, std::span<char> to);
DUET_API std::string to_text(const Activity& what);

}  // namespace duet::base
