#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>

#include "duet/duet.h"

namespace duet {

void serve(const std::string& path, Methods& methods) {
  Log log(base::stderr_sink(false), base::Level::info);
  Loop loop;
  Server server(loop, log, methods);
  bool stops = false;
  const auto end_if_empty = [&] {
    if (stops && server.client_count() == 0) loop.stop();
  };
  server.on_empty = end_if_empty;
  const transport::Sentinel sentinel(loop, {.signals = {SIGINT, SIGTERM},
                                            .on_signal =
                                                [&](int) {
                                                  stops = true;
                                                  server.stop();
                                                  end_if_empty();
                                                },
                                            .patience = std::chrono::seconds(2),
                                            .on_overdue = [] { std::_Exit(0); }});
  server.start(path);
  log.info("listening", {{"path", path}});
  loop.run();
}

}  // namespace duet
