#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "app/client/daemon_client.h"
#include "app/top/board.h"
#include "app/top/layout.h"
#include "duet/base/lifetime.h"
#include "duet/transport/loop.h"

namespace duet::app::top {

/// An offset for `task.output` that only tells where the output ends: the largest whole number that every client of
/// JSON can write.
inline constexpr std::uint64_t behind_every_end = (std::uint64_t{1} << 53U) - 1;

/// Keeps a Board true: loads it, listens to the daemon's events, asks for what they do not tell, and finds the next
/// daemon when this one is gone.
///
/// What it asks is bounded, whatever tasks do: records of new tasks at most four times a second, the end of the output
/// only for tasks that are on the screen, once a tick.
class Feed {
 public:
  using OnOutcome = std::function<void(const peer::Outcome&)>;

  /// `daemon` is connected. `on_change` is called whenever there may be something new to see.
  Feed(DaemonClient& daemon, std::string place, std::function<void()> on_change);

  const Board& board() const { return board_; }
  const Link& link() const { return link_; }

  /// False: there is no connection.
  bool ask(std::string_view method, const boost::json::object& params, OnOutcome callback);
  /// Who holds what back has changed.
  void refresh_queue();

  /// After each turn of the loop.
  void look_after_connection();
  /// Now and then. `running` is what is on the screen.
  void tick(const std::vector<task::TaskId>& running);

 private:
  /// The callback does not come if the connection is lost before.
  bool inquire(std::string_view method, const boost::json::object& params, OnOutcome callback);
  void load();
  void load_list(const boost::json::object& params);
  void load_part(std::string_view method, const boost::json::object& params,
                 std::function<void(const boost::json::value&)> use);
  void part_has_come();
  Board& filling() { return loading_ ? *loading_ : board_; }
  void take(std::string_view method, std::string_view params);
  void take_status(const peer::Outcome& outcome);
  void load_anew();

  void refresh_soon();
  void refresh();
  void load_more_of_queue();
  void take_beginning_of_queue(const boost::json::value& records, task::TaskId limit);
  void take_records(const boost::json::value& records);
  void ask_for_stale();
  void ask_for_output(task::TaskId number);
  void read_last_line(task::TaskId number, std::uint64_t end);
  void reconnect();
  void reconnect_later();

  DaemonClient& daemon_;
  std::function<void()> on_change_;
  Board board_;
  std::optional<Board> loading_;  // until all of it is there, the last one is shown
  std::size_t parts_to_come_ = 0;
  Link link_;
  std::uint64_t session_ = 0;
  bool connected_ = true;
  bool attempt_is_due_ = false;
  bool queue_is_stale_ = false;
  bool asks_for_queue_ = false;
  std::optional<base::TimePoint> status_asked_;
  base::TimePoint status_came_;
  std::map<task::TaskId, std::uint64_t> output_ends_;  // where the line that is shown was read
  std::set<task::TaskId> asked_for_output_;
  transport::Loop::Timer refreshing_;
  transport::Loop::Timer reconnecting_;
  base::Lifetime lifetime_;
};

}  // namespace duet::app::top
