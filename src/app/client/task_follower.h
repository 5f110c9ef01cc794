#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "app/client/steady_calls.h"

namespace duet::app {

/// Which output is wanted.
struct OutputPart {
  std::string stream = {};                 ///< `stdout` or `stderr`; empty: both
  std::uint64_t from = 0;                  ///< the first byte
  std::optional<std::uint64_t> tail = {};  ///< only the last so many bytes, and what comes after
};

/// Reads the output of tasks, byte for byte, and can stay with them until they end.
///
/// Events say that there is something to read, offsets say where to go on; so nothing is asked for in vain, and a
/// restart of the daemon costs a pause. `print` gets the bytes, and where the middle was dropped a line that says how
/// much.
class TaskFollower {
 public:
  using Print = std::function<void(const std::string& id, std::string_view bytes)>;

  TaskFollower(DaemonClient& daemon, const std::vector<std::string>& ids, Print print, OutputPart part = {});

  /// What there is now, of one task after the other.
  void print_output();
  /// All that comes until no more will. Returns the tasks' records, or what was told of their ends by a daemon that
  /// then stopped. Throws Failure when the time of --timeout is over.
  std::vector<boost::json::object> follow();

 private:
  struct Followed {
    std::string id;
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> tail = {};  // until it is known where that begins
    char last_byte = '\n';
    bool news = true;
    bool done = false;
    bool given_up = false;
    std::optional<boost::json::object> record = {};   // as it was when all of the output had been read
    std::optional<boost::json::object> before = {};   // the record, before it seemed to begin again
    std::optional<boost::json::object> end = {};      // what the daemon told of it
    std::optional<std::uint64_t> output_end = {};     // if the daemon told that there will be no more
    std::optional<base::TimePoint> last_moment = {};  // when the rest of the output is no longer waited for
    std::string heard = {};                           // of its output, in events
    std::uint64_t heard_from = 0;

    bool has_everything() const { return record || (end && (done || (output_end && offset >= *output_end))); }
    bool is_over() const { return done || given_up; }
    void begin_again();
    bool end_as_told();
  };

  Followed* find(const std::string& id);
  void expect_news_of_all();
  void take(std::string_view event, std::string_view params);
  void take_of(Followed& task, std::string_view event, const boost::json::object& told);
  static void take_output(Followed& task, const boost::json::object& piece);
  void print_what_was_heard(Followed& task);
  bool subscribe();
  bool stay();
  bool drain_those_with_news();
  bool drain(Followed& task);
  std::optional<boost::json::object> read_piece(Followed& task);
  bool read_records();
  bool read_record(Followed& task);
  void print_piece(Followed& task, const boost::json::object& piece);
  bool wait_for_news();
  base::Duration patience_for_news();

  SteadyCalls calls_;
  std::vector<Followed> tasks_;
  Print print_;
  std::string stream_;
  bool overflowed_ = false;
};

/// Waits until a task has ended, through restarts of the daemon. Returns its record as JSON text, or nothing if the
/// daemon does not know it. Throws Failure.
std::optional<std::string> await_end(SteadyCalls& calls, const std::string& id);

}  // namespace duet::app
