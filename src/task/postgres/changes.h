#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "duet/base/lifetime.h"
#include "duet/transport/loop.h"
#include "task/postgres/line.h"
#include "task/postgres/membership.h"

namespace duet::task::postgres {

/// Changes on their way to the database. One whose answer was lost is asked for again, on the next connection or as a
/// worker that has joined anew, until its answer is known or ten seconds are over.
///
/// Only for functions that may be called twice: the second answer says what is there, which may be the first one's
/// doing. Whoever is answered hears whether that may be so. For the loop's thread; the line and the membership outlive
/// it.
class Changes {
 public:
  /// `again`: an earlier call may have done it already.
  using Done = std::function<void(const Answer& answer, bool again)>;

  static constexpr base::Duration patience = std::chrono::seconds(10);

  Changes(transport::Loop& loop, Membership& membership) : loop_(loop), membership_(membership) {}
  Changes(const Changes&) = delete;
  Changes& operator=(const Changes&) = delete;

  void call(std::string_view function, std::vector<Argument> arguments, Done done);
  /// The worker has joined, for the first time or anew.
  void joined();

 private:
  struct Change {
    std::string function;
    std::vector<Argument> arguments;
    Done done;
    bool again = false;
    bool under_way = false;
    std::string incarnation;  // that it was asked as
    base::TimePoint until;
    std::string problem = "the queue's database does not answer";
    transport::Loop::Timer deadline;
  };

  void send(std::uint64_t number);
  void take(std::uint64_t number, const Answer& answer);
  void give_up(std::uint64_t number);
  void finish(std::uint64_t number, const Answer& answer);

  transport::Loop& loop_;
  Membership& membership_;
  std::map<std::uint64_t, Change> changes_;
  std::uint64_t last_ = 0;
  base::Lifetime lifetime_;
};

}  // namespace duet::task::postgres
