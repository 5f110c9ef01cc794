#include <unistd.h>

#include <cstddef>
#include <exception>
#include <optional>
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
#include "app/view/event_view.h"
#include "app/view/text_style.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/message.h"
#include "duet/rpc/value.h"

namespace duet::app {

namespace {

void print_as_json(std::string_view method, std::string_view params) {
  std::string text;
  const std::string name = rpc::quoted(method);
  rpc::encode_notification(name, params).append_to(text);
  print_text(text + '\n');
}

void print_for_people(std::string_view method, std::string_view params, bool live, const TextStyle& style) {
  const base::UtcTime now = base::system_clock().utc();
  const std::optional<base::UtcTime> happened = live ? std::optional(now) : std::nullopt;
  const boost::json::value parsed = rpc::parse_value(params);
  const boost::json::object none;
  print_text(event_line(method, parsed.is_object() ? parsed.get_object() : none, style, happened, now) + '\n');
}

EventPrinter::Print printing_of(const CommandLine& line) {
  const bool for_people = isatty(STDOUT_FILENO) == 1 && !line.flag("json");
  if (!for_people) return [](auto method, auto params, bool /*live*/) { print_as_json(method, params); };
  const TextStyle style(colour_wanted(STDOUT_FILENO, line.no_color));
  return [style](auto method, auto params, bool live) { print_for_people(method, params, live, style); };
}

}  // namespace

int run_events(const CommandLine& line) {
  DaemonClient daemon(line);
  SteadyCalls calls(daemon);
  EventPrinter printer(line.number("since"), line.texts("kind"), printing_of(line));
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
  std::optional<peer::Outcome> away;  // of the queue
  for (;;) {
    const std::vector<boost::json::object> subscriptions = printer.begin_subscription();
    for (std::size_t i = 0; i < subscriptions.size(); ++i) {
      const bool is_last = i + 1 == subscriptions.size();
      const auto on_subscribed = [&, is_last](const peer::Outcome& outcome) {
        if (SteadyCalls::daemon_has_gone(outcome)) return;
        if (SteadyCalls::queue_is_away(outcome)) return void(away = outcome);
        guarded([&] {
          check("events.subscribe", outcome);
          is_away = false;
          calls.has_answered();
          const std::string note = is_last ? printer.subscribed(outcome.result) : std::string();
          if (!note.empty()) daemon.tell_user(note);
        });
      };
      daemon.client().call_later("events.subscribe", subscriptions[i], on_subscribed, daemon.patience());
    }
    daemon.client().wait_for([&] { return fault || away || printer.has_fallen_behind(); }, calls.time_left());
    if (fault) std::rethrow_exception(fault);
    const std::optional<peer::Outcome> was_away = std::exchange(away, std::nullopt);
    if (was_away && daemon.is_connected()) {
      if (!calls.await_queue(*was_away)) {
        throw DaemonClient::failure_of("events.subscribe", {.cause = peer::Outcome::Cause::timed_out});
      }
      away.reset();
      printer.begin_again();
      continue;
    }
    if (printer.has_fallen_behind() && daemon.is_connected()) continue;
    if (daemon.is_connected()) {  // the time that --timeout gave is over
      if (printer.is_subscribed()) return 0;
      throw DaemonClient::failure_of("events.subscribe", {.cause = peer::Outcome::Cause::timed_out});
    }
    daemon.check_refusal();
    if (printer.daemon_has_stopped()) throw Failure("the daemon has stopped", exit_code::no_daemon);
    if (!std::exchange(is_away, true)) daemon.tell_user(daemon.lost_text());
    calls.reconnect();
    printer.begin_again();
  }
}

}  // namespace duet::app
