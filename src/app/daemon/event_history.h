#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "duet/base/fd.h"
#include "duet/base/log.h"

namespace duet::app {

/// Something that happened, as clients are told of it.
struct Event {
  std::uint64_t seq = 0;
  std::string kind;     ///< without `event.`
  std::string task_id;  ///< empty: it concerns no task
  std::string params;   ///< JSON, with the seq
};

/// The latest events, numbered without gaps, bounded in bytes; the oldest go first.
///
/// They are kept in a file too, written before anybody is told, so that a client can go on where it was after the
/// daemon was killed. The numbers belong to an epoch: it is a new one when the file is gone, damaged or could not be
/// written, or when the machine went down without the daemon's knowledge, since the last events may be missing then.
class EventHistory {
 public:
  struct Limits {
    std::size_t bytes = 8U * 1024 * 1024;  ///< of memory; some 20,000 events
  };

  /// Reads `name` in `folder`, whose descriptor must stay open. Never throws for what the file is.
  EventHistory(int folder, std::string name, base::Log& log) : EventHistory(folder, std::move(name), log, Limits()) {}
  EventHistory(int folder, std::string name, base::Log& log, Limits limits);
  EventHistory(const EventHistory&) = delete;
  EventHistory& operator=(const EventHistory&) = delete;
  ~EventHistory() = default;

  const std::string& epoch() const { return epoch_; }
  std::uint64_t oldest() const { return events_.empty() ? next_ : events_.front().seq; }
  std::uint64_t next() const { return next_; }
  /// From oldest() to before next().
  const Event& at(std::uint64_t seq) const { return events_.at(static_cast<std::size_t>(seq - oldest())); }

  /// The reference is good until the next call.
  const Event& add(std::string_view kind, boost::json::object params);
  /// The daemon ends: the file is complete, whatever happens to the machine.
  void close();

 private:
  bool load();
  bool load_line(std::string_view line);
  void keep(Event event);
  void write_line(const std::string& line);
  void write_anew();
  void give_up_file(const char* what);

  int folder_;
  std::string name_;
  base::Log& log_;
  Limits limits_;
  base::Fd file_;  // none: it cannot be written
  std::size_t file_bytes_ = 0;
  std::string epoch_;
  std::uint64_t next_ = 1;
  std::deque<Event> events_;
  std::size_t bytes_ = 0;
  bool was_closed_ = false;  // the file that was read
};

}  // namespace duet::app
