#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "duet/base/lifetime.h"
#include "duet/transport/loop.h"
#include "task/journal.h"
#include "task/postgres/line.h"
#include "task/postgres/membership.h"
#include "task/postgres/under_way.h"

namespace duet::task::postgres {

/// Reads the queue's events into the journal, as long as somebody wants them.
///
/// A wake-up says that there are more; without any it looks now and then. What is older than what the journal has is
/// fetched for who asks. For the loop's thread.
class EventReader {
 public:
  struct Calls {
    /// The journal begins anew: its numbers are of another epoch.
    std::function<void()> began_anew;
    /// What happened while nobody read may not have been told.
    std::function<void()> became_current;
    /// Calls when all is told that comes before these events.
    std::function<void(const std::vector<Event>& events, std::function<void()> then)> before =
        [](const std::vector<Event>&, const std::function<void()>& then) { then(); };
  };

  EventReader(transport::Loop& loop, Line& line, Membership& membership, Journal& journal, Calls calls);
  EventReader(const EventReader&) = delete;
  EventReader& operator=(const EventReader&) = delete;

  /// What nobody wants any more is read for some seconds longer: short visits often follow one another.
  void set_wanted(bool wanted);
  bool is_wanted() const { return wanted_; }
  /// There is more to tell than was read at once.
  bool is_behind() const { return behind_; }
  /// There may be more.
  void look();
  /// The line is up, or the queue was joined.
  void begin();

  using Told = std::function<void(const tl::expected<std::vector<Event>, Fault>&)>;
  /// Straight from the database.
  void read(std::uint64_t after, std::size_t most, Told told);

  /// Calls, now or within a second, when whoever has just come has his place in the journal: what is changed then is
  /// told to him.
  void after_placing(std::function<void()> done);
  /// Calls, now or later, when the journal has told all that is committed by now, as far as it can be read.
  void catch_up(std::function<void()> done);

  /// Of a task that an event told of: as it was then, or none if it is not kept any more. Null: no event told of it
  /// lately.
  const std::optional<Task>* known(TaskId id) const;
  /// Who waits for the journal has to do with what is here.
  void line_is_down();

 private:
  using Done = std::function<void()>;

  void reach_back(std::uint64_t first, Done done);
  void begin_reading();
  void end_reading();
  void refresh();
  void caught_up();
  void placed();
  void take_state(const Answer& answer);
  void read_soon();
  void read_on();
  void take_read(std::uint64_t next, const std::vector<Event>& events);
  void take_events(const std::vector<Event>& events);
  void become_current();
  void fetch_before(std::uint64_t first, const Done& done);
  void set_timer();
  void read_rows(std::uint64_t after, std::size_t most, Line::Done got);
  std::vector<Event> events_of(const Result& rows);
  void know_all(const Result& rows);
  void know(TaskId id, std::uint64_t seq, std::string_view record, std::string_view params);

  transport::Loop& loop_;
  Line& line_;
  Membership& membership_;
  Journal& journal_;
  Calls calls_;
  bool wanted_ = false;
  bool follows_ = false;  // since the journal was last placed it has been wanted
  UnderWay refreshing_;
  UnderWay reading_;
  bool again_ = false;
  bool behind_ = false;
  std::vector<std::pair<std::uint64_t, Done>> waiting_;  // for the journal to be current
  std::vector<Done> catching_up_;                        // wait for what is committed to be told
  std::vector<Done> after_placing_;
  transport::Loop::Timer placing_;
  struct Known {
    std::uint64_t seq = 0;  // of the event that told of it
    std::optional<Task> task = {};
  };
  std::map<TaskId, Known> known_;
  std::vector<TaskId> known_order_;
  std::size_t known_next_ = 0;
  transport::Loop::Timer timer_;
  transport::Loop::Timer lingering_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task::postgres
