#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "simulate/agenda.h"
#include "simulate/model_database.h"
#include "simulate/random.h"
#include "simulate/trace.h"

namespace duet::simulate {

/// A connection as its server sees it. The daemon's end of it may have gone.
struct ServerConnection {
  std::size_t host = 0;
  bool open = true;
  std::function<void()> broken = {};  ///< tells the daemon's end
  std::function<void(const ModelDatabase::Notice&)> notified = {};
};

/// The database's server, and the network between it and each machine. A request takes its time; it may be lost before
/// it is carried out, its answer may be lost afterwards, and one may be carried out when nobody waits for it any more.
/// What is asked over one connection is done and answered in order: who asks waits for each answer.
class ModelServer {
 public:
  static constexpr std::chrono::seconds longest_stall{30};
  /// What waits for a network that is cut is dropped after that.
  static constexpr std::chrono::seconds retransmission{10};
  /// A call that was sent is carried out by then, or never.
  static constexpr std::chrono::seconds longest_way = longest_stall + retransmission;

  using Reply = std::function<void(const ModelDatabase::Answer&)>;
  /// In how many of ten thousand requests.
  struct Habits {
    std::uint64_t requests_lost = 0;
    std::uint64_t answers_lost = 0;
    std::uint64_t stalls = 0;
    std::uint64_t refusals = 0;  ///< the server has no room on its disk, and does nothing
  };
  enum class Cut { none, refused, silent };

  ModelServer(Agenda& agenda, ModelDatabase& database, Trace& trace, std::size_t hosts, Random chance)
      : agenda_(agenda), database_(database), trace_(trace), chance_(chance), cuts_(hosts, Cut::none) {}

  Habits habits;
  /// There is a pooler between: connections outlive a server, and what is asked while there is none waits.
  bool is_pooled = false;
  /// After each function that is carried out.
  std::function<void(std::size_t host, std::string_view function, const std::vector<Argument>& arguments)> carried_out;

  ModelDatabase& database() { return database_; }
  bool is_up() const { return up_; }
  /// Down: all connections break, or with a pooler those over which something is asked; what was not carried out never
  /// is.
  void set_up(bool up);
  Cut cut_of(std::size_t host) const { return cuts_.at(host); }
  void set_cut(std::size_t host, Cut cut);
  /// Those of one machine break, as when somebody restarts what lies between.
  void break_connections(std::size_t host);

  /// Null, later, if there is no way.
  void connect(std::size_t host, const std::function<void(const std::shared_ptr<ServerConnection>&)>& connected);
  /// Over a connection that has broken, whether its daemon knows of that or not, nothing is asked and nobody answers.
  void request(const std::shared_ptr<ServerConnection>& connection, std::string function,
               std::vector<Argument> arguments, Reply reply);
  base::Duration latency();

 private:
  void carry_out(const std::shared_ptr<ServerConnection>& connection, const std::string& function,
                 const std::vector<Argument>& arguments, const Reply& reply, base::TimePoint asked);
  void answer(const std::shared_ptr<ServerConnection>& connection, const ModelDatabase::Answer& answer,
              const Reply& reply);
  void deliver_notices();
  void break_off(const std::shared_ptr<ServerConnection>& connection);
  void tell_broken(const std::shared_ptr<ServerConnection>& connection);
  bool is_reached_by(std::size_t host) const { return up_ && cuts_.at(host) == Cut::none; }

  Agenda& agenda_;
  ModelDatabase& database_;
  Trace& trace_;
  Random chance_;
  bool up_ = true;
  std::uint64_t life_ = 0;  // of the server: what was asked of an earlier one is never done
  std::vector<Cut> cuts_;
  std::vector<std::weak_ptr<ServerConnection>> connections_;
};

}  // namespace duet::simulate
