#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/lifetime.h"
#include "duet/transport/loop.h"
#include "simulate/machine.h"
#include "simulate/model_server.h"
#include "task/postgres/line.h"
#include "task/postgres/pauses.h"

namespace duet::simulate {

/// A daemon's line to the simulated server. It does what task::postgres::Database does with libpq: two connections,
/// calls of each in order and with ten seconds of patience, which are made anew when they break. One for each life.
class ModelLine final : public task::postgres::Line {
 public:
  /// `listens`: wake-ups work.
  ModelLine(transport::Loop& loop, ModelServer& server, Process& daemon, std::size_t host, bool listens, Random chance);
  ~ModelLine() override;

  void start(Events events) override;
  void call(Way way, std::string_view function, std::vector<Argument> arguments, Done done) override;
  void listen(const std::string& channel) override { channels_.insert(channel); }
  void unlisten(const std::string& channel) override { channels_.erase(channel); }
  bool is_up(Way way) const override { return end_of(way).stage == Stage::up; }
  void reconnect(Way way, const std::string& why) override;
  Standing standing() const override;

 private:
  enum class Stage { idle, connecting, greeting, up };
  struct Call {
    std::string function;
    std::vector<Argument> arguments;
    Done done;
    base::TimePoint deadline;
  };
  struct End {
    Way way;
    Stage stage = Stage::idle;
    std::shared_ptr<ServerConnection> connection = {};
    std::uint64_t number = 0;  // of the connection
    std::deque<Call> urgent = {};
    std::deque<Call> waiting = {};
    std::optional<Call> sent = {};
    std::uint64_t statement = 0;
    task::postgres::Pauses pauses = {};
    transport::Loop::Timer pause = {};
    transport::Loop::Timer tick = {};
  };

  const End& end_of(Way way) const { return ends_[way == Way::work ? 0 : 1]; }
  End& end_of(Way way) { return ends_[way == Way::work ? 0 : 1]; }
  void connect_later(End& end);
  void connect(End& end);
  void connected(End& end, const std::shared_ptr<ServerConnection>& connection);
  void greet(End& end);
  void accept(End& end);
  void close(End& end, const std::string& why);
  void pump(End& end);
  void send(End& end, Call call);
  void answered(End& end, std::uint64_t statement, const task::postgres::Answer& answer);
  void set_tick(End& end);
  void check_time(End& end);
  void expire(End& end, std::deque<Call>& calls);
  void told_down(const std::string& why);
  /// On the daemon's loop, in a moment.
  void later(std::function<void()> deed);

  transport::Loop& loop_;
  ModelServer& server_;
  Process& daemon_;
  std::size_t host_;
  bool listens_;
  Random chance_;
  Events events_;
  std::set<std::string> channels_;
  std::array<End, 2> ends_{End{.way = Way::work}, End{.way = Way::watch}};
  bool told_up_ = false;
  std::string told_trouble_;
  base::Lifetime lifetime_;
};

}  // namespace duet::simulate
