#include "app/log/log_setup.h"

#include <unistd.h>

#include <utility>

#include "app/log/fallback_sink.h"
#include "duet/version.h"

namespace duet::app {

LogSetup set_up_log(const char* file, std::optional<base::Level> asked, bool coloured_stderr,
                    base::LogFileLimits limits) {
  LogSetup setup;
  if (file != nullptr && *file != '\0') {
    base::OpenedLogFile opened = base::open_log_file(file, std::move(limits));
    setup.complaint = std::move(opened.reason);
    if (opened.sink) {
      setup.sink = std::make_unique<FallbackSink>(std::move(opened.sink), base::stderr_sink(coloured_stderr),
                                                  asked.value_or(base::Level::warn));
      setup.sink_name = file;
      setup.level = base::Level::info;
    }
  }
  if (!setup.sink) setup.sink = base::stderr_sink(coloured_stderr);
  if (asked) setup.level = *asked;
  return setup;
}

void announce(base::Log& log, const LogSetup& setup) {
  if (!setup.complaint.empty()) {
    const base::Level level = log.level();
    log.set_level(base::Level::warn);
    log.warn(file_complaint, {{"reason", setup.complaint}});
    log.set_level(level);
  }
  log.info("duet-rpc started", {{"version", std::string_view(kVersion)},
                                {"pid", getpid()},
                                {"level", base::level_name(log.level())},
                                {"sink", setup.sink_name}});
}

}  // namespace duet::app
