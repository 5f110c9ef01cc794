#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "app/commands/commands.h"
#include "app/log/log_setup.h"
#include "app/methods/stdio_methods.h"
#include "app/methods/test_methods.h"
#include "app/stdio/client_process.h"
#include "app/stdio/lifecycle.h"
#include "app/view/text_style.h"
#include "duet/peer/connection.h"
#include "duet/transport/stdio.h"

namespace duet::app {
namespace {

void add_methods(peer::Methods& methods, base::Log& log, [[maybe_unused]] transport::Loop& loop, Lifecycle& lifecycle,
                 ClientProcess& client) {
  const auto watch = [&log, &client](std::int64_t pid) {
    if (!client.watch(pid)) log.info("no such client process here, not watching it", {{"pid", pid}});
  };
  add_stdio_methods(methods, log,
                    {.shut_down = [&lifecycle] { lifecycle.shutdown_requested(); }, .watch_process = watch});
#ifdef DUET_TEST_METHODS
  add_test_methods(methods, loop);
#endif
}

}  // namespace

int run_rpc(const CommandLine& line, const base::StandardDescriptors& descriptors) {
  signal(SIGPIPE, SIG_IGN);
  base::Fd output = transport::take_stdout();
  LogSetup setup = set_up_log(std::getenv("DUET_RPC_LOG"), line.log_level, colour_wanted(STDERR_FILENO, line.no_color));
  base::Log log(std::move(setup.sink), setup.level);

  transport::Loop loop;
  Lifecycle lifecycle(loop, log);
  ClientProcess client(loop, [&lifecycle] { lifecycle.client_process_ended(); });
  peer::Methods methods;
  add_methods(methods, log, loop, lifecycle, client);

  auto channel = std::make_unique<transport::StdioChannel>(loop, base::duplicate(STDIN_FILENO), std::move(output));
  const int input = channel->input();
  peer::Protocol protocol = peer::Protocol::lsp_server();
  protocol.frame_timeout = line.read_timeout;
  peer::Connection connection(loop, std::move(channel), protocol, methods, log, lifecycle.events());
  const std::unique_ptr<transport::Sentinel> sentinel = lifecycle.start(connection, input);

  announce(log, setup);
  return lifecycle.run(!descriptors.was_closed(STDOUT_FILENO));
}

}  // namespace duet::app
