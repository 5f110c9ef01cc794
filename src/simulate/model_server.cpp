#include "simulate/model_server.h"

#include <algorithm>
#include <utility>

namespace duet::simulate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using task::postgres::Fault;

constexpr seconds connect_patience{5};

}  // namespace

base::Duration ModelServer::latency() {
  return chance_.one_in(20) ? milliseconds(chance_.below(400)) : std::chrono::microseconds(chance_.below(3000));
}

void ModelServer::set_up(bool up) {
  up_ = up;
  if (up) return;
  ++life_;
  if (is_pooled) return;
  for (const auto& each : std::exchange(connections_, {})) {
    if (const auto connection = each.lock()) break_off(connection);
  }
}

void ModelServer::set_cut(std::size_t host, Cut cut) {
  cuts_.at(host) = cut;
  if (cut == Cut::refused) break_connections(host);
}

void ModelServer::break_connections(std::size_t host) {
  for (const auto& each : connections_) {
    const auto connection = each.lock();
    if (connection && connection->host == host) break_off(connection);
  }
}

void ModelServer::break_off(const std::shared_ptr<ServerConnection>& connection) {
  if (std::exchange(connection->open, false)) tell_broken(connection);
}

// Whoever cannot be reached now hears of it when he sends something again.
void ModelServer::tell_broken(const std::shared_ptr<ServerConnection>& connection) {
  agenda_.after(latency(), [this, connection] {
    if (connection->broken && cuts_.at(connection->host) != Cut::silent) connection->broken();
  });
}

void ModelServer::connect(std::size_t host,
                          const std::function<void(const std::shared_ptr<ServerConnection>&)>& connected) {
  const base::Duration wait = cuts_.at(host) == Cut::silent ? base::Duration(connect_patience) : latency();
  agenda_.after(wait, [this, host, connected] {
    if (!is_reached_by(host)) return connected(nullptr);
    std::erase_if(connections_, [](const auto& each) { return each.expired(); });
    const auto connection = std::make_shared<ServerConnection>(ServerConnection{.host = host});
    connections_.push_back(connection);
    connected(connection);
  });
}

void ModelServer::request(const std::shared_ptr<ServerConnection>& connection, std::string function,
                          std::vector<Argument> arguments, Reply reply) {
  if (!connection->open) return tell_broken(connection);  // nobody is at its other end
  base::Duration wait = latency();
  if (chance_.below(10'000) < habits.stalls) {
    wait = milliseconds(chance_.below(milliseconds(longest_stall).count()));
    trace_.note("a call of " + function + " stalls for " +
                std::to_string(std::chrono::duration_cast<milliseconds>(wait).count()) + " ms");
  }
  const base::TimePoint asked = agenda_.now();
  agenda_.after(wait, [this, connection, function = std::move(function), arguments = std::move(arguments),
                       reply = std::move(reply), asked, life = life_] {
    if (life == life_) return carry_out(connection, function, arguments, reply, asked);
    break_off(connection);
  });
}

// One that arrived is carried out whether somebody waits for it or not.
void ModelServer::carry_out(const std::shared_ptr<ServerConnection>& connection, const std::string& function,
                            const std::vector<Argument>& arguments, const Reply& reply, base::TimePoint asked) {
  const std::size_t host = connection->host;
  if (!up_ || cuts_.at(host) == Cut::silent) {
    if (agenda_.now() - asked > retransmission || (!up_ && !connection->open)) return;
    agenda_.after(milliseconds(500), [=, this, life = life_] {
      if (life == life_) carry_out(connection, function, arguments, reply, asked);
    });
    return;
  }
  if (chance_.below(10'000) < habits.requests_lost) {
    trace_.note("a call of " + function + " is lost");
    return break_off(connection);
  }
  if (chance_.below(10'000) < habits.refusals) {
    trace_.note("a call of " + function + " is refused");
    return answer(connection, tl::unexpected(Fault{Fault::Kind::refused, "53100", "no space left on device"}), reply);
  }
  const ModelDatabase::Answer given = database_.call(function, arguments);
  if (carried_out) carried_out(host, function, arguments);
  deliver_notices();
  if (chance_.below(10'000) < habits.answers_lost) {
    trace_.note("the answer of " + function + " is lost");
    return break_off(connection);
  }
  answer(connection, given, reply);
}

void ModelServer::answer(const std::shared_ptr<ServerConnection>& connection, const ModelDatabase::Answer& given,
                         const Reply& reply) {
  agenda_.after(latency(), [this, connection, given, reply] {
    if (connection->open && cuts_.at(connection->host) == Cut::none) reply(given);
  });
}

void ModelServer::deliver_notices() {
  for (const ModelDatabase::Notice& notice : database_.take_notices()) {
    for (const auto& each : connections_) {
      const auto connection = each.lock();
      if (!connection || !connection->open) continue;
      agenda_.after(latency(), [this, connection, notice] {
        const bool arrives = connection->open && connection->notified && cuts_.at(connection->host) == Cut::none;
        if (arrives) connection->notified(notice);
      });
    }
  }
}

}  // namespace duet::simulate
