#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/lifetime.h"
#include "duet/transport/loop.h"
#include "task/postgres/line.h"
#include "task/postgres/link.h"
#include "task/postgres/store_address.h"

namespace duet::task::postgres {

/// The line by two connections of libpq: what is overdue on one is asked after on the other.
///
/// A commit may wait for a standby that is gone. Reads (`read_…`, which change nothing) do not wait behind it for more
/// than a second: they go over the watch connection then.
///
/// A pooler is judged by the server's process: libpq is told its number when it connects, and a pooler makes one up; if
/// `pg_backend_pid()` says another one, connections are shared. Then nothing is LISTENed to, which would stay behind on
/// a connection of somebody else. Without a pooler a wake-up is sent on the one connection and must come back on the
/// other; until it has, wake-ups do not count (standing().listens).
class Database final : public Line {
 public:
  struct Options {
    Link::Options link = {};
    base::Duration probe_wait = std::chrono::seconds(5);    ///< a wake-up that takes longer does not work
    base::Duration probe_again = std::chrono::seconds(60);  ///< after one that did not come back
  };

  /// The schema has letters of a name only (`[a-z_][a-z0-9_]*`, at most 40): nothing is quoted. Throws
  /// std::invalid_argument if not.
  Database(transport::Loop& loop, StoreAddress address, std::string schema, Options options);
  Database(transport::Loop& loop, StoreAddress address, std::string schema)
      : Database(loop, std::move(address), std::move(schema), Options()) {}
  ~Database() override;

  void start(Events events) override;
  void call(Way way, std::string_view function, std::vector<Argument> arguments, Done done) override;
  void listen(const std::string& channel) override;
  void unlisten(const std::string& channel) override;
  bool is_up(Way way) const override;
  void reconnect(Way way, const std::string& why) override;
  Standing standing() const override;
  /// The server lets nobody in with this name, password and database: that does not pass by itself.
  bool is_turned_away() const;

 private:
  // A connection and what is known of it.
  struct End;

  End& end_of(Way way) const;
  End& other_than(const End& end) const;
  Link::Events link_events(Way way);

  void connected(Way way);
  void judge_pooler(End& end, const Answer& answer);
  void listen_to_all(End& end);
  void greet(End& end);
  void went_up(End& end);
  void went_down(End& end, const std::string& why);
  void heard(const std::string& channel, const std::string& payload);
  void inquire(const End& about, int process, std::function<void(std::optional<bool>)> answer);
  void probe();
  bool both_up() const;
  bool can_read_for_work() const;
  void move_reads();

  transport::Loop& loop_;
  StoreAddress address_;
  std::string schema_;
  Options options_;
  Events events_;
  std::set<std::string> channels_;
  bool told_up_ = false;
  std::string told_trouble_;

  std::string probe_channel_;
  std::string probe_token_;  // what is to come back
  bool listens_ = false;
  transport::Loop::Timer probe_timer_;

  std::unique_ptr<End> work_;
  std::unique_ptr<End> watch_;
  base::Lifetime lifetime_;
};

}  // namespace duet::task::postgres
