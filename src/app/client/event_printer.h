#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace duet::app {

/// Prints notifications in the order of their numbers, those of the next daemon behind those of the last.
///
/// Those that come between the connection and the subscription are not sent again, and what is replayed comes after
/// them: they are kept until it is their turn. To know whose turn it is takes all numbers, so that of a replay the
/// wanted kinds are picked here. It knows no connection: it is told what came, and says what to ask for.
class EventPrinter {
 public:
  /// `live`: it has just happened, and is not replayed.
  using Print = std::function<void(std::string_view method, std::string_view params, bool live)>;

  /// `since`: the number to begin with, else with what is new. `kinds`: the wanted ones, else all.
  EventPrinter(std::optional<std::int64_t> since, const std::vector<std::string>& kinds, Print print);

  /// With another daemon.
  void begin_again();
  /// What to ask for, one after another; the last one counts. The daemon knows which kinds there are.
  std::vector<boost::json::object> begin_subscription();
  /// Takes the answer to the last of them. Returns what the user should know of it, if anything.
  std::string subscribed(std::string_view answer);
  bool is_subscribed() const { return subscribed_; }
  void take(std::string_view method, std::string_view params);

  /// What was missed has to be asked for anew.
  bool has_fallen_behind() const { return behind_; }
  /// It said so, and that no other is to take its place.
  bool daemon_has_stopped() const { return stopped_; }

 private:
  struct Notification {
    std::string method;
    std::string params;
    std::optional<std::uint64_t> seq;  // output has none
  };

  std::string begin_epoch();
  std::string note_of(const boost::json::object& answer, std::uint64_t newest);
  bool is_final(const Notification& event) const;
  void keep_early(Notification event);
  void print_early();
  void print_if_wanted(const Notification& event) const;
  void print(const Notification& event) const;

  std::optional<std::int64_t> since_;
  boost::json::array kinds_;
  Print print_;
  bool subscribed_ = false;
  bool behind_ = false;
  bool stopped_ = false;
  std::string epoch_;
  std::uint64_t live_from_ = 0;
  std::uint64_t next_ = 0;
  std::deque<Notification> early_;
  std::size_t early_bytes_ = 0;  // since the subscription was asked for
};

}  // namespace duet::app
