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

#include "app/commands/commands.h"
#include "app/daemon_client.h"
#include "app/failure.h"
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

/// Prints notifications in the order of their numbers.
///
/// Those that come between the connection and the subscription are not sent again, and what is replayed comes after
/// them: they are kept until it is their turn. To know whose turn it is takes all numbers, so that of a replay the
/// wanted kinds are picked here.
class EventPrinter {
 public:
  explicit EventPrinter(const CommandLine& line) : since_(line.number("since")) {
    for (const std::string& kind : line.texts("kind")) kinds_.emplace_back(kind);
  }

  /// One after another; the last one counts. The daemon knows which kinds there are.
  std::vector<object> subscriptions() const {
    std::vector<object> all;
    if (!kinds_.empty()) all.push_back({{"kinds", kinds_}});
    if (since_) all.push_back({{"since", *since_}});
    if (all.empty()) all.emplace_back();
    return all;
  }
  bool has_fallen_behind() const { return behind_; }

  /// Returns what the user should know of it, if anything.
  std::string subscribed(std::string_view text) {
    subscribed_ = true;
    behind_ = false;
    const boost::json::value answer = rpc::parse_value(text);
    const auto newest = answer.at("next").to_number<std::uint64_t>();
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
  std::uint64_t next_ = 0;
  std::deque<Notification> early_;
};

}  // namespace

int run_events(const CommandLine& line) {
  DaemonClient daemon(line);
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
  do {
    const std::vector<object> subscriptions = printer.subscriptions();
    for (std::size_t i = 0; i < subscriptions.size(); ++i) {
      const bool is_last = i + 1 == subscriptions.size();
      const auto on_subscribed = [&, is_last](const peer::Outcome& outcome) {
        guarded([&] {
          check("events.subscribe", outcome);
          const std::string note = is_last ? printer.subscribed(outcome.result) : std::string();
          if (!note.empty()) daemon.tell_user(note);
        });
      };
      daemon.client().call_later("events.subscribe", rpc::to_text(subscriptions[i]), on_subscribed, daemon.patience());
    }
    daemon.client().wait_for([&] { return fault || printer.has_fallen_behind(); }, daemon.long_patience());
    if (fault) std::rethrow_exception(fault);
  } while (printer.has_fallen_behind());
  if (daemon.is_connected()) return 0;  // the time that --timeout gave is over
  throw Failure("the daemon has stopped", exit_code::no_daemon);
}

}  // namespace duet::app
