#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "duet/base/lifetime.h"
#include "duet/transport/loop.h"
#include "task/postgres/line.h"
#include "task/postgres/membership.h"
#include "task/postgres/under_way.h"
#include "task/submitted.h"
#include "task/task.h"

namespace duet::task::postgres {

/// Submissions on their way to the database: all that wait go in one call, in the order they came.
///
/// Each has a random id that is unique in the table, and is sent again under it when a connection breaks: one submit,
/// one task. After ten seconds without certainty it is answered with −32003 and `data.outcome`: `none`, it will never
/// turn up, or `unknown`. For the loop's thread.
class Submits {
 public:
  /// A task as it is sent.
  struct Entry {
    std::string key = {};
    std::string agent = {};
    std::string group = {};
    std::vector<std::string> needs = {};
    bool own = false;  ///< only this worker need accept its agent
    std::int64_t priority = 0;
    std::uint32_t retries = 0;
    OnLost on_lost = OnLost::fail;
    std::optional<std::int64_t> delay = {};       ///< milliseconds
    std::optional<std::int64_t> not_before = {};  ///< milliseconds since 1970
    std::string prompt = {};
    std::string metadata = {};
    std::string labels = {};
    std::string body = {};
    std::string env = {};
    std::vector<TaskId> after = {};
  };
  /// What the database made of it.
  struct Taken {
    TaskId id = 0;
    State state = State::queued;
    bool fresh = false;
    bool again = false;      ///< it was sent before, and that may have been it
    std::string body = {};   ///< of the one that has its key, if it is not fresh
    bool other_env = false;  ///< that one has another environment
  };
  using Done = std::function<void(const tl::expected<Taken, rpc::Error>&)>;

  static constexpr base::Duration patience = std::chrono::seconds(10);
  static constexpr std::size_t most_at_once = 500;
  static constexpr std::size_t most_bytes = std::size_t{8} << 20U;
  static constexpr std::size_t most_waiting_bytes = std::size_t{64} << 20U;

  Submits(transport::Loop& loop, Line& line, Membership& membership)
      : loop_(loop), line_(line), membership_(membership) {}
  Submits(const Submits&) = delete;
  Submits& operator=(const Submits&) = delete;

  /// `asked`: since when it waits, if not since now.
  void add(Entry entry, Done done, std::optional<base::TimePoint> asked = {});
  /// Calls when all that were added before are answered.
  void after(std::function<void()> call);
  void line_is_up() { send(); }

 private:
  struct Waiting {
    std::string id = {};
    Entry entry = {};
    Done done = {};  // none: it was answered while it was on its way
    base::TimePoint until = {};
    bool sent = false;  // at least once, and nobody knows what became of it
    std::size_t bytes = 0;
  };

  void send();
  void load();
  std::vector<Argument> arguments_of(const std::vector<Waiting>& batch) const;
  void take(const Answer& answer);
  void take_rows(const Result& rows);
  void put_back(std::vector<Waiting> batch, const Fault& fault);
  void give_up_late();
  void set_timer();
  void answer(Waiting& waiting, const tl::expected<Taken, rpc::Error>& taken);
  void answered();
  static rpc::Error uncertain(const Waiting& waiting, const std::string& why);
  tl::expected<Taken, rpc::Error> taken_of(const Result& rows, std::size_t row) const;

  transport::Loop& loop_;
  Line& line_;
  Membership& membership_;
  std::deque<Waiting> waiting_;
  std::size_t waiting_bytes_ = 0;
  UnderWay asking_;
  std::vector<Waiting> in_flight_;  // when nothing is asked: nobody knows what became of them
  std::size_t singly_ = 0;          // so many go one by one: one of them was refused
  std::string last_problem_ = "the queue's database does not answer";
  std::uint64_t added_ = 0;
  std::uint64_t answered_ = 0;
  std::deque<std::pair<std::uint64_t, std::function<void()>>> afters_;
  transport::Loop::Timer timer_;
  transport::Loop::Timer pause_;  // after a refusal
  transport::Loop::Deferred sending_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task::postgres
