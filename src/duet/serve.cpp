#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>

#include "duet/duet.h"

namespace duet {

void serve(const std::string& path, Methods& methods) {
  Log log(base::stderr_sink(false), base::Level::info);
  Loop loop;
  bool stops = false;
  Server server(loop, log, methods, {.on_empty = [&] {
                  if (stops) loop.stop();
                }});
  const auto stop = [&] {
    stops = true;
    server.stop();
    if (server.client_count() == 0) loop.stop();
  };
  const transport::Sentinel sentinel(loop, {.signals = {SIGINT, SIGTERM},
                                            .on_signal = [&](int) { stop(); },
                                            .patience = std::chrono::seconds(2),
                                            .on_overdue = [] { std::_Exit(0); }});
  server.start(path);
  log.info("listening", {{"path", path}});
  loop.run();
}

}  // namespace duet
