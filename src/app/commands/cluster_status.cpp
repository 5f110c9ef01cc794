#include <unistd.h>

#include <string>

#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/commands/cluster_place.h"
#include "app/commands/commands.h"
#include "app/view/cluster_view.h"
#include "app/view/table.h"
#include "duet/rpc/error.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

peer::Outcome ask_status(DaemonClient& daemon, const CommandLine& line) {
  try {
    return daemon.ask("cluster.status", {}, daemon.patience());
  } catch (const Failure& failure) {
    const bool is_far = line.text("socket") || line.text("connect");
    if (failure.code() == exit_code::no_daemon && !is_far)
      shared_queue(line);  // without the setting that is what lacks
    throw;
  }
}

}  // namespace

int run_cluster_status(const CommandLine& line) {
  DaemonClient daemon(line);
  const peer::Outcome outcome = ask_status(daemon, line);
  const bool is_unknown = outcome.error && outcome.error->code() == rpc::code::method_not_found;
  if (is_unknown) throw Failure(no_shared_queue());
  if (outcome.cause != peer::Outcome::Cause::answered) throw DaemonClient::failure_of("cluster.status", outcome);
  const std::string& answer = outcome.result;
  if (line.flag("json")) return print_text(answer + '\n');
  tell_untrusted(daemon);
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  return print_text(cluster_page(rpc::parse_value(answer).as_object(), style, terminal_width(STDOUT_FILENO)));
}

}  // namespace duet::app
