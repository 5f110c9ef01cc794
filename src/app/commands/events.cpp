#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <string>

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

constexpr std::uint64_t the_end = std::numeric_limits<std::uint64_t>::max();

struct Notification {
  std::string method;
  std::string params;
};

std::uint64_t seq_of(std::string_view params) {
  const boost::json::value parsed = rpc::parse_value(params);
  const boost::json::value* const seq = parsed.is_object() ? parsed.get_object().if_contains("seq") : nullptr;
  return seq == nullptr ? the_end : seq->to_number<std::uint64_t>();
}

/// Prints notifications in the order of their numbers.
///
/// Those that come between the connection and the subscription are not sent again, and what is replayed comes after
/// them: they are kept until it is their turn.
class EventPrinter {
 public:
  explicit EventPrinter(const CommandLine& line) {
    if (const auto since = line.number("since")) wanted_["since"] = *since;
    boost::json::array kinds;
    for (const std::string& kind : line.texts("kind")) kinds.emplace_back(kind);
    if (!kinds.empty()) wanted_["kinds"] = std::move(kinds);
  }

  std::string subscription() const { return rpc::to_text(wanted_); }
  bool has_fallen_behind() const { return behind_; }

  /// Returns what the user should know of it, if anything.
  std::string subscribed(std::string_view answer) {
    subscribed_ = true;
    behind_ = false;
    if (!wanted_.contains("since")) early_.clear();
    const boost::json::value parsed = rpc::parse_value(answer);
    const boost::json::value* const oldest = parsed.as_object().if_contains("oldest");
    if (oldest == nullptr) return {};
    return "not all events since " + rpc::to_text(wanted_.at("since")) + " are kept; the oldest is " +
           rpc::to_text(*oldest);
  }

  void take(std::string_view method, std::string_view params) {
    if (!subscribed_) return early_.push_back({std::string(method), std::string(params)});
    if (const std::uint64_t seq = seq_of(params); seq != the_end) print_early(seq);  // output has no number
    print({std::string(method), std::string(params)});
    if (method != "event.overflow") return;
    wanted_["since"] = seq_of(params);
    behind_ = true;
  }

  /// What came early and has a smaller number.
  void print_early(std::uint64_t before = the_end) {
    while (!early_.empty() && seq_of(early_.front().params) < before) {
      if (is_wanted(early_.front())) print(early_.front());
      early_.pop_front();
    }
  }

 private:
  bool is_wanted(const Notification& event) const {
    if (seq_of(event.params) < wanted_.at("since").to_number<std::uint64_t>()) return false;
    const boost::json::value* const kinds = wanted_.if_contains("kinds");
    if (kinds == nullptr) return true;
    for (const boost::json::value& kind : kinds->get_array()) {
      if (event.method == "event." + std::string(kind.as_string())) return true;
    }
    return false;
  }

  static void print(const Notification& event) {
    std::string text;
    const std::string method = rpc::quoted(event.method);
    rpc::encode_notification(method, event.params).append_to(text);
    print_text(text + '\n');
  }

  object wanted_;
  bool subscribed_ = false;
  bool behind_ = false;
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
    const auto on_subscribed = [&](const peer::Outcome& outcome) {
      guarded([&] {
        check("events.subscribe", outcome);
        if (const std::string note = printer.subscribed(outcome.result); !note.empty()) daemon.tell_user(note);
      });
    };
    const auto on_ping = [&](const peer::Outcome&) { guarded([&] { printer.print_early(); }); };
    daemon.client().call_later("events.subscribe", printer.subscription(), on_subscribed, daemon.patience());
    daemon.client().call_later("ping", {}, on_ping, daemon.patience());
    daemon.client().wait_for([&] { return fault || printer.has_fallen_behind(); }, daemon.long_patience());
    if (fault) std::rethrow_exception(fault);
  } while (printer.has_fallen_behind());
  if (daemon.is_connected()) return 0;  // the time that --timeout gave is over
  throw Failure("the daemon has stopped", exit_code::no_daemon);
}

}  // namespace duet::app
