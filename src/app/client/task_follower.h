#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "app/client/steady_calls.h"

namespace duet::app {

/// Reads the output of one task, byte for byte, and can stay with it until it ends.
///
/// Events say that there is something to read, offsets say where to go on; so nothing is asked for in vain, and a
/// restart of the daemon costs a pause. `print` gets the bytes, and where the middle was dropped a line that says how
/// much.
class TaskFollower {
 public:
  using Print = std::function<void(std::string_view)>;

  TaskFollower(DaemonClient& daemon, std::string id, Print print);

  /// What there is now.
  void print_output();
  /// All that comes until no more will. Returns the task's record, or what was told of its end by a daemon that then
  /// stopped. Throws Failure when the time of --timeout is over.
  boost::json::object follow();

 private:
  void take(std::string_view event, std::string_view params);
  void take_output(const boost::json::object& piece);
  void print_what_was_heard();
  bool has_everything() const;
  bool subscribe();
  bool stay();
  bool drain();
  void print_piece(const boost::json::object& piece);
  bool wait_for_news();

  SteadyCalls calls_;
  std::string id_;
  Print print_;
  std::uint64_t offset_ = 0;
  char last_byte_ = '\n';
  bool done_ = false;
  bool news_ = false;
  bool overflowed_ = false;
  std::optional<boost::json::object> end_;      // what the daemon told of it
  std::optional<std::uint64_t> output_end_;     // if the daemon told that there will be no more
  std::optional<base::TimePoint> last_moment_;  // when the rest of the output is no longer waited for
  bool given_up_ = false;
  std::string heard_;  // of its output, in events
  std::uint64_t heard_from_ = 0;
};

/// Waits until a task has ended, through restarts of the daemon. Returns its record as JSON text. Throws Failure.
std::string await_end(DaemonClient& daemon, const std::string& id);

}  // namespace duet::app
