#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/reader_watch.h"
#include "app/client/refusal_text.h"
#include "app/client/relay.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "duet/rpc/message.h"
#include "duet/transport/stdio.h"

namespace duet::app {
namespace {

using Ending = Relay::Ending;

// `KIND,…`; `all` stands for every kind, the output of tasks included.
boost::json::object subscription_of(std::string_view kinds) {
  if (kinds == "all") return {};
  boost::json::array names;
  for (std::size_t begin = 0; begin <= kinds.size();) {
    const std::size_t end = std::min(kinds.find(',', begin), kinds.size());
    if (end > begin) names.emplace_back(kinds.substr(begin, end - begin));
    begin = end + 1;
  }
  if (names.empty()) throw Failure("--events: names of events, such as taskFailed,taskCompleted, or all");
  return {{"kinds", std::move(names)}};
}

int end_of(Ending ending, const Relay& relay) {
  switch (ending) {
    case Ending::done:
      return 0;
    case Ending::client_gone:
      throw Failure("nobody reads stdout any more");
    case Ending::unreadable:
      throw Failure("stdin cannot be read");
    case Ending::refused:
      throw Failure(refusal_text("events.subscribe", rpc::decode_error(relay.refusal())));
    case Ending::oversize:
      throw Failure("the daemon wrote a message of more than 64 MiB, which is not passed on");
    case Ending::daemon_gone:
      break;
  }
  throw Failure("the daemon has gone", exit_code::no_daemon);
}

}  // namespace

int run_connect(const CommandLine& line) {
  DaemonClient daemon(line);
  transport::Loop& loop = daemon.client().loop();
  std::unique_ptr<transport::Channel> channel = daemon.open_channel();
  transport::Channel& to_daemon = *channel;
  base::Fd output = transport::take_stdout();
  const base::Fd same_output = base::duplicate(output.get());
  const auto framing = line.text("framing").value_or("lsp") == "lines" ? peer::Protocol::Framing::lines
                                                                       : peer::Protocol::Framing::content_length;
  std::optional<Ending> ending;
  Relay relay(std::make_unique<transport::StdioChannel>(loop, base::duplicate(STDIN_FILENO), std::move(output)),
              framing, std::move(channel),
              {.on_last_request = [&] { to_daemon.end_output(); }, .on_end = [&](Ending how) { ending = how; }});
  const ReaderWatch reader(loop, same_output.get(), [&relay] { relay.client_has_gone(); });
  if (const std::optional<std::string> kinds = line.text("events")) relay.subscribe(subscription_of(*kinds));
  relay.open();
  while (!ending) loop.turn();
  daemon.check_refusal();
  return end_of(*ending, relay);
}

}  // namespace duet::app
