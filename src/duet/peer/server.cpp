#include "duet/peer/server.h"

#include <malloc.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "duet/framing/block_pool.h"
#include "duet/peer/announcement.h"
#include "duet/rpc/message.h"
#include "duet/transport/unix_acceptor.h"

namespace duet::peer {
namespace {

constexpr int too_many_clients = -32003;
constexpr std::size_t worth_giving_back = 16U * 1024 * 1024;

}  // namespace

Server::Server(transport::Loop& loop, base::Log& log, ServerEvents events, ServerLimits limits,
               const Protocol& protocol)
    : Server(loop, log, nullptr, std::move(events), limits, protocol) {}

Server::Server(transport::Loop& loop, base::Log& log, Methods& methods, ServerEvents events, ServerLimits limits,
               const Protocol& protocol)
    : Server(loop, log, &methods, std::move(events), limits, protocol) {}

Server::Server(transport::Loop& loop, base::Log& log, Methods* methods, ServerEvents events, ServerLimits limits,
               const Protocol& protocol)
    : loop_(loop),
      log_(log),
      events_(std::move(events)),
      limits_(limits),
      protocol_(protocol),
      methods_(methods == nullptr ? own_methods_ : *methods),
      pool_(std::make_shared<framing::BlockPool>()) {}

Server::~Server() = default;

void Server::register_methods(const std::map<std::string, Handler>& handlers) {
  for (const auto& [name, handler] : handlers) methods_.add(name, handler);
}

void Server::listen(std::unique_ptr<transport::Acceptor> acceptor) {
  acceptor->open(*this);
  acceptors_.push_back(std::move(acceptor));
}

void Server::start(const std::string& path) { listen(transport::unix_acceptor(loop_, log_, path)); }

// Who leaves does so at the end of this turn, and the next one is accepted then.
bool Server::make_room() {
  set_full(true);
  if (Client* const visitor = visitor_to_leave()) send_away(*visitor);
  return false;
}

Server::Client* Server::visitor_to_leave() {
  const base::TimePoint now = loop_.now();
  Client* idle = nullptr;
  Client* owed = nullptr;
  std::size_t left = limits_.visitors;
  for (auto each = clients_.rbegin(); left > 0 && each != clients_.rend(); ++each) {
    Client& client = each->second;
    if (client.leaving) return nullptr;                 // one is on its way
    if (client.connection->peer().admission) continue;  // whoever admitted it sees to how many there are
    --left;
    const base::Duration stayed = now - client.since;
    if (stayed >= limits_.visit && !client.connection->conversation().owes_answer() && client.load == 0) idle = &client;
    if (stayed >= limits_.long_visit) owed = &client;
  }
  return idle != nullptr ? idle : owed;
}

void Server::send_away(Client& client) {
  const std::string error =
      rpc::encode(rpc::Error(too_many_clients, "Too many clients", {{"limit", limits_.max_clients}}));
  Announcement refusal(rpc::encode_error("null", error));
  client.connection->send(refusal, no_share);
  // Behind the writing, as much of it as the client takes.
  client.leaving = loop_.deferred([&client] { client.connection->close(); });
}

void Server::set_full(bool full) {
  if (std::exchange(full_, full) != full && events_.on_full) events_.on_full(full);
}

void Server::admit(std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity) {
  admit(std::move(channel), identity, protocol_);
}

std::uint64_t Server::admit(std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity,
                            const Protocol& protocol, std::string_view first_bytes,
                            std::shared_ptr<const Admission> admission) {
  const Peer peer{
      .connection = ++last_id_, .pid = identity.pid, .uid = identity.uid, .admission = std::move(admission)};
  begin(std::move(channel), peer, protocol, first_bytes, false);
  return peer.connection;
}

void Server::admit_inside(std::unique_ptr<transport::Channel> channel, std::shared_ptr<const Admission> admission) {
  begin(std::move(channel), {.connection = ++last_id_, .admission = std::move(admission)}, protocol_, {}, true);
}

void Server::begin(std::unique_ptr<transport::Channel> channel, const Peer& peer, const Protocol& protocol,
                   std::string_view first_bytes, bool is_inside) {
  const std::uint64_t id = peer.connection;
  ConnectionEvents events;
  events.on_closed = [this, id](Ending) {
    closed_.push_back(id);
    if (!forgetting_) forgetting_ = loop_.deferred([this] { forget_closed(); });
  };
  events.on_load_changed = [this, id] { weigh(id); };
  if (events_.wrap_channel) channel = events_.wrap_channel(std::move(channel), peer);
  auto connection =
      std::make_unique<Connection>(loop_, std::move(channel), protocol, methods_, log_, std::move(events), peer, pool_);
  Connection& opened = *connection;
  clients_.emplace(id, Client{.connection = std::move(connection), .since = loop_.now(), .is_inside = is_inside});
  inside_ += is_inside ? 1 : 0;
  if (share_ != no_share) opened.conversation().limit_waiting(share_);
  if (events_.on_opened) events_.on_opened(opened);
  opened.open(first_bytes);
}

void Server::forget_closed() {
  for (const std::uint64_t id : std::exchange(closed_, {})) forget(id);
}

void Server::forget(std::uint64_t id) {
  const auto found = clients_.find(id);
  total_load_ -= found->second.load;
  inside_ -= found->second.is_inside ? 1 : 0;
  clients_.erase(found);
  give_back_memory_later();
  if (events_.on_forgotten) events_.on_forgotten(id);
  share_what_is_left();
  for (const auto& acceptor : acceptors_) acceptor->resume();
  if (client_count() + limits_.visitors <= limits_.max_clients) set_full(false);
  if (client_count() == 0 && events_.on_empty) events_.on_empty();
}

void Server::weigh(std::uint64_t id) {
  Client& client = clients_.at(id);
  update_load(client);
  if (total_load_ > limits_.max_waiting) refuse_largest_partial_messages();
  share_what_is_left();
  if (events_.on_load_changed) events_.on_load_changed(*client.connection);
}

void Server::update_load(Client& client) {
  const std::size_t load = client.connection->load();
  total_load_ = total_load_ - client.load + load;
  client.load = load;
  give_back_memory_later();
}

// What was kept for many lies in pieces between what is still needed, and would stay with the process for ever.
void Server::give_back_memory_later() {
  most_load_ = std::max(most_load_, total_load_);
  if (most_load_ < worth_giving_back || total_load_ > most_load_ / 2 || giving_back_) return;
  giving_back_ = loop_.after(std::chrono::seconds(1), [this] {
    if (total_load_ > most_load_ / 2) return;
    most_load_ = total_load_;
    malloc_trim(0);
  });
}

// Nobody can pause for these: only their senders could finish them, and they may never do.
void Server::refuse_largest_partial_messages() {
  std::vector<Client*> largest_first;
  for (auto& [id, client] : clients_) {
    if (client.connection->conversation().partial_bytes() > 0) largest_first.push_back(&client);
  }
  std::ranges::stable_sort(largest_first, std::greater(),
                           [](const Client* client) { return client->connection->conversation().partial_bytes(); });
  for (Client* const client : largest_first) {
    if (total_load_ <= limits_.max_waiting) return;
    client->connection->conversation().refuse_partial_message();
    update_load(*client);
  }
}

// In powers of two, so that the connections need not be told of every change.
void Server::share_what_is_left() {
  std::size_t share = no_share;
  if (total_load_ > limits_.max_waiting / 2) {
    const std::size_t left = limits_.max_waiting - std::min(total_load_, limits_.max_waiting);
    share = std::max<std::size_t>(std::bit_floor(left / clients_.size()), 1);
  }
  if (share == share_) return;
  share_ = share;
  for (auto& [id, client] : clients_) client.connection->conversation().limit_waiting(share);
}

std::size_t Server::broadcast(std::string_view method, const rpc::Json& params) {
  Announcement message(method, params);
  const std::size_t most_unread = std::min(limits_.max_unread_broadcast, share_);
  std::size_t missed = 0;
  for (auto& [id, client] : clients_) {
    if (client.connection->conversation().is_closing() || client.connection->send(message, most_unread)) continue;
    ++missed;
    if (events_.on_missed) events_.on_missed(*client.connection);
  }
  return missed;
}

void Server::stop() {
  for (const auto& acceptor : acceptors_) acceptor->close();
  loop_.defer([closed = std::move(acceptors_)] {});  // one of them may have called us
  acceptors_.clear();
  for (auto& [id, client] : clients_) client.connection->stop();
}

bool Server::is_reachable() const {
  return std::ranges::all_of(acceptors_, [](const auto& acceptor) { return acceptor->is_reachable(); });
}

void Server::restore() {
  for (const auto& acceptor : acceptors_) {
    if (!acceptor->is_reachable()) acceptor->restore();
  }
}

}  // namespace duet::peer
