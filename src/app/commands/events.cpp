#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/event_printer.h"
#include "app/client/reader_watch.h"
#include "app/client/steady_calls.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "duet/rpc/value.h"

namespace duet::app {

int run_events(const CommandLine& line) {
  DaemonClient daemon(line);
  SteadyCalls calls(daemon);
  EventPrinter printer(line.number("since"), line.texts("kind"), print_text);
  const ReaderWatch reader(daemon.client().loop());
  std::exception_ptr fault;
  const auto guarded = [&fault](const auto& action) {
    try {
      action();
    } catch (...) {
      fault = std::current_exception();
    }
  };
  const auto check = [](std::string_view method, const peer::Outcome& outcome) {
    if (outcome.cause != peer::Outcome::Cause::answered) throw DaemonClient::failure_of(method, outcome);
  };
  daemon.client().on_any(
      [&](std::string_view method, std::string_view params) { guarded([&] { printer.take(method, params); }); });
  daemon.connect();
  bool is_away = false;
  for (;;) {
    const std::vector<boost::json::object> subscriptions = printer.begin_subscription();
    for (std::size_t i = 0; i < subscriptions.size(); ++i) {
      const bool is_last = i + 1 == subscriptions.size();
      const auto on_subscribed = [&, is_last](const peer::Outcome& outcome) {
        if (SteadyCalls::daemon_has_gone(outcome)) return;
        guarded([&] {
          check("events.subscribe", outcome);
          is_away = false;
          const std::string note = is_last ? printer.subscribed(outcome.result) : std::string();
          if (!note.empty()) daemon.tell_user(note);
        });
      };
      daemon.client().call_later("events.subscribe", subscriptions[i], on_subscribed, daemon.patience());
    }
    daemon.client().wait_for([&] { return fault || printer.has_fallen_behind(); }, calls.time_left());
    if (fault) std::rethrow_exception(fault);
    if (printer.has_fallen_behind() && daemon.is_connected()) continue;
    if (daemon.is_connected()) {  // the time that --timeout gave is over
      if (printer.is_subscribed()) return 0;
      throw DaemonClient::failure_of("events.subscribe", {.cause = peer::Outcome::Cause::timed_out});
    }
    if (printer.daemon_has_stopped()) throw Failure("the daemon has stopped", exit_code::no_daemon);
    if (!std::exchange(is_away, true)) daemon.tell_user("the daemon is gone; waiting for the next one");
    calls.reconnect();
    printer.begin_again();
  }
}

}  // namespace duet::app
