#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace duet::app {

/// Which events a stream is to get.
struct StreamWish {
  std::optional<std::uint64_t> since = {};  ///< the first; none: what happens from now on
  std::string epoch = {};                   ///< that `since` counts in; empty: whatever there is
  std::set<std::string, std::less<>> kinds = {};
  std::set<std::string, std::less<>> tasks = {};
  std::set<std::string, std::less<>> outputs = {};  ///< of these tasks, whatever the kinds
};

/// One event on its way to a stream. `seq` is 0 for one without a number.
struct StreamedEvent {
  std::string_view epoch = {};
  std::uint64_t seq = 0;
  std::string_view kind = {};
  std::string_view params = {};
};

/// Who is told of events one after another and asks nothing: the reader of `GET /events`.
class EventStream {
 public:
  /// False: so much waits to be read already; then it is given again when more was read.
  virtual bool give(const StreamedEvent& event, std::size_t most_waiting) = 0;
  /// It has fallen behind: this one is the last.
  virtual void give_last(const StreamedEvent& event) = 0;

 protected:
  ~EventStream() = default;
};

/// Where streams come from.
class EventSource {
 public:
  /// False: a kind that nobody knows. The stream gets what it is to get from now on, until close_stream().
  virtual bool open_stream(std::uint64_t number, EventStream& stream, const StreamWish& wish) = 0;
  /// It has read something.
  virtual void go_on(std::uint64_t number) = 0;
  virtual void close_stream(std::uint64_t number) = 0;

 protected:
  ~EventSource() = default;
};

/// An event as text/event-stream has it.
std::string streamed(const StreamedEvent& event);
/// What the query of `GET /events` and its Last-Event-ID ask for; none: they make no sense.
std::optional<StreamWish> stream_wish(std::string_view query, std::optional<std::string_view> last_id);

}  // namespace duet::app
