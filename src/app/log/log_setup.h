#pragma once

#include <memory>
#include <optional>
#include <string>

#include "duet/base/log.h"
#include "duet/base/log_sink.h"

namespace duet::app {

/// Where the log goes and how much of it, decided from the options and the environment.
struct LogSetup {
  std::unique_ptr<base::LogSink> sink;
  base::Level level = base::Level::warn;
  std::string sink_name = "stderr";  // or the file's path
  std::string complaint;             // why the file of DUET_RPC_LOG is not used; may be empty
};

/// `file` is the value of DUET_RPC_LOG, null or empty for none. Opens the file, so it comes after the stdout guard.
LogSetup set_up_log(const char* file, std::optional<base::Level> asked, bool coloured_stderr,
                    base::LogFileLimits limits = {});

/// The first lines: the complaint, which is told at any level, and at `info` what was started.
void announce(base::Log& log, const LogSetup& setup);

}  // namespace duet::app
