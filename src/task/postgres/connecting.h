#pragma once

#include <functional>
#include <memory>
#include <string>

#include <tl/expected.hpp>

#include "duet/base/lifetime.h"
#include "duet/transport/loop.h"
#include "task/postgres/libpq.h"
#include "task/postgres/resolve.h"

namespace duet::task::postgres {

/// One attempt to connect to one address, with a deadline. When this goes, the attempt ends.
///
/// The loop waits for the socket. Each step is done on another thread: to read 140 certificates and to answer SCRAM
/// take milliseconds, and libpq reads files.
class Connecting final : private transport::Loop::Watcher {
 public:
  /// The connection is ready to use and does not block. The error is for people.
  using Done = std::function<void(tl::expected<PgConnection, std::string>)>;

  Connecting(transport::Loop& loop, const StoreAddress& address, const Candidate& candidate, base::Duration most,
             Done done);
  Connecting(const Connecting&) = delete;
  Connecting& operator=(const Connecting&) = delete;
  ~Connecting() = default;

  /// Its time was up: the other side may not be there at all.
  bool is_late() const { return late_; }
  /// The server has answered, and lets nobody in with this name, password and database.
  bool is_turned_away() const { return turned_away_; }

 private:
  // Shared with the thread that does a step, which may end after us.
  struct Attempt;

  void on_ready(std::uint32_t events) override;
  void step();
  void stepped(Libpq::PostgresPollingStatusType status);
  void wait(std::uint32_t events);
  void fail(const std::string& why);
  void take_refusal(std::string said);
  void finish(tl::expected<PgConnection, std::string> outcome);

  transport::Loop& loop_;
  std::shared_ptr<Attempt> attempt_;
  Done done_;
  bool late_ = false;
  bool turned_away_ = false;
  transport::Loop::Watch watch_;
  transport::Loop::Timer deadline_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task::postgres
