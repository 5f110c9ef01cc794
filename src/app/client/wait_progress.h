#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "app/client/daemon_client.h"
#include "duet/base/clock.h"
#include "duet/transport/loop.h"

namespace duet::app {

/// How far tasks are that a command waits for, as a line that is painted again and again: `1 of 3 done; task-4 runs
/// for 12s`.
///
/// It hears the events that every client gets, on a terminal or not, so it asks for nothing. Those of a time without a
/// daemon it does not know; what the command prints in the end is right all the same.
class WaitProgress {
 public:
  /// Of tasks, by their records. On a terminal, `fd`, it paints every second, and when something happens.
  WaitProgress(DaemonClient& daemon, int fd);
  WaitProgress(const WaitProgress&) = delete;
  WaitProgress& operator=(const WaitProgress&) = delete;
  ~WaitProgress();

  /// The record of this task is asked for; add() follows.
  void expect(const std::string& id);
  void add(const boost::json::object& record);
  /// The record of a task as it was, with what was told of its end since. None: it has not ended, as far as is known.
  const boost::json::object* find_ended(const std::string& id) const;
  /// The line is taken away, so that something else can be printed.
  void hide();
  void show();

 private:
  void take(std::string_view params);
  void tick();

  DaemonClient& daemon_;
  int fd_;
  bool on_terminal_;
  bool shown_ = false;
  std::vector<boost::json::object> tasks_;
  std::string next_;                  // whose record is asked for
  boost::json::object told_of_next_;  // since then
  transport::Loop::Timer next_tick_;
};

/// `1 of 3 done; task-4 runs for 12s, task-5 is queued`. Nothing if all of them have ended.
std::string progress_line(const std::vector<boost::json::object>& tasks, base::UtcTime now);

/// Puts what an event tells into a task's record. False: it tells of another task, or not of its state.
bool note_progress(boost::json::object& task, const boost::json::object& told);

}  // namespace duet::app
