#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "duet/base/log.h"
#include "duet/transport/channel.h"

namespace duet::app {

/// Whether AIWG_IPC_DEBUG asks for a trace: set, not empty and not 0.
bool trace_wanted(const char* value);

/// A message as a trace may show it: the values of a task's environment are hidden, whatever else it says stays. What
/// is not JSON is told by its size only.
std::string without_secrets(std::string_view message);

/// Puts a trace between a connection and its channel: every line that passes is logged, in and out. `number` tells the
/// connections of a server apart; 0 is not shown. Lines over 64 KiB are told by their size.
std::unique_ptr<transport::Channel> traced(std::unique_ptr<transport::Channel> channel, base::Log& log,
                                           std::uint64_t number);

}  // namespace duet::app
