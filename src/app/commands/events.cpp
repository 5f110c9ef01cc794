#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "app/client/steady_calls.h"
#include "app/commands/commands.h"
#include "app/project/failure.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/message.h"
#include "duet/rpc/value.h"

namespace duet::app {
namespace {

using boost::json::object;

struct Notification {
  std::string method;
  std::string params;
  std::optional<std::uint64_t> seq;  // output has none
};

std::optional<std::uint64_t> seq_of(std::string_view params) {
  const boost::json::value parsed = rpc::parse_value(params);
  const boost::json::value* const seq = parsed.is_object() ? parsed.get_object().if_contains("seq") : nullptr;
  return seq == nullptr ? std::nullopt : std::optional(seq->to_number<std::uint64_t>());
}

/// Prints notifications in the order of their numbers, those of the next daemon behind those of the last.
///
/// Those that come between the connection and the subscription are not sent again, and what is replayed comes after
/// them: they are kept until it is their turn. To know whose turn it is takes all numbers, so that of a replay the
/// wanted kinds are picked here.
class EventPrinter {
 public:
  explicit EventPrinter(const CommandLine& line) : since_(line.number("since")) {
    for (const std::string& kind : line.texts("kind")) kinds_.emplace_back(kind);
  }

  /// With another daemon.
  void begin_again() {
    if (next_ > 0) since_ = static_cast<std::int64_t>(next_);
    early_.clear();
  }

  /// What to ask for, one after another; the last one counts. The daemon knows which kinds there are.
  std::vector<object> begin_subscription() {
    subscribed_ = behind_ = false;
    std::vector<object> all;
    if (!kinds_.empty()) {
      boost::json::array kinds = kinds_;
      kinds.emplace_back("daemonStopping");
      all.push_back({{"kinds", std::move(kinds)}});
    }
    if (since_) all.push_back({{"since", *since_}});
    if (all.empty()) all.emplace_back();
    return all;
  }
  bool has_fallen_behind() const { return behind_; }
  /// It said so, and that no other is to take its place.
  bool daemon_has_stopped() const { return stopped_; }

  /// Returns what the user should know of it, if anything.
  std::string subscribed(std::string_view text) {
    subscribed_ = true;
    const boost::json::value answer = rpc::parse_value(text);
    const auto newest = answer.at("next").to_number<std::uint64_t>();
    live_from_ = newest;
    if (const std::string_view epoch = answer.at("epoch").as_string(); epoch != epoch_) {
      const bool is_first = epoch_.empty();
      epoch_ = epoch;
      if (!is_first) return begin_epoch();
    }
    next_ = since_ ? std::min<std::uint64_t>(static_cast<std::uint64_t>(*since_), newest) : newest;
    std::string note;
    if (const boost::json::value* const oldest = answer.as_object().if_contains("oldest")) {
      next_ = std::max(next_, oldest->to_number<std::uint64_t>());
      note = "not all events since " + std::to_string(*since_) + " are kept; the oldest is " + rpc::to_text(*oldest);
    }
    next_ = std::max<std::uint64_t>(next_, 1);
    std::erase_if(early_, [this](const Notification& event) { return event.seq < next_; });
    print_early();
    return note;
  }

  void take(std::string_view method, std::string_view params) {
    Notification event{std::string(method), std::string(params), seq_of(params)};
    if (method == "event.daemonStopping") stopped_ = is_final(event);
    if (!subscribed_) return early_.push_back(std::move(event));
    if (method == "event.overflow") {
      print(event);
      since_ = static_cast<std::int64_t>(event.seq.value());
      behind_ = true;
      return;
    }
    print_if_wanted(event);
    if (!event.seq) return;
    next_ = *event.seq + 1;
    print_early();
  }

 private:
  std::string begin_epoch() {
    since_ = 1;
    next_ = 1;
    subscribed_ = false;
    behind_ = true;
    return "the history of events was lost; it begins anew";
  }

  /// Those that are replayed tell of other daemons.
  bool is_final(const Notification& event) const {
    return event.seq >= live_from_ && !rpc::parse_value(event.params).as_object().contains("restarting");
  }

  /// Those of the early ones whose turn it is.
  void print_early() {
    for (; !early_.empty() && early_.front().seq <= next_; early_.pop_front()) {
      print_if_wanted(early_.front());
      next_ = std::max(next_, early_.front().seq.value_or(0) + 1);
    }
  }

  void print_if_wanted(const Notification& event) const {
    const bool is_wanted = kinds_.empty() || std::ranges::any_of(kinds_, [&](const boost::json::value& wanted) {
                             const std::string_view name = wanted.as_string();
                             return event.method == name || event.method == "event." + std::string(name);
                           });
    if (is_wanted) print(event);
  }

  static void print(const Notification& event) {
    std::string text;
    const std::string method = rpc::quoted(event.method);
    rpc::encode_notification(method, event.params).append_to(text);
    print_text(text + '\n');
  }

  std::optional<std::int64_t> since_;
  boost::json::array kinds_;
  bool subscribed_ = false;
  bool behind_ = false;
  bool stopped_ = false;
  std::string epoch_;
  std::uint64_t live_from_ = 0;
  std::uint64_t next_ = 0;
  std::deque<Notification> early_;
};

}  // namespace

int run_events(const CommandLine& line) {
  DaemonClient daemon(line);
  SteadyCalls calls(daemon);
  EventPrinter printer(line);
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
    const std::vector<object> subscriptions = printer.begin_subscription();
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
      daemon.client().call_later("events.subscribe", rpc::to_text(subscriptions[i]), on_subscribed, daemon.patience());
    }
    daemon.client().wait_for([&] { return fault || printer.has_fallen_behind(); }, calls.time_left());
    if (fault) std::rethrow_exception(fault);
    if (printer.has_fallen_behind() && daemon.is_connected()) continue;
    if (daemon.is_connected()) return 0;  // the time that --timeout gave is over
    if (printer.daemon_has_stopped()) throw Failure("the daemon has stopped", exit_code::no_daemon);
    if (!std::exchange(is_away, true)) daemon.tell_user("the daemon is gone; waiting for the next one");
    calls.reconnect();
    printer.begin_again();
  }
}

}  // namespace duet::app
