#include "duet/peer/server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "duet/framing/lines.h"
#include "duet/rpc/json_text.h"
#include "duet/transport/fd_channel.h"

namespace duet::peer {
namespace {

constexpr int too_many_clients = -32003;

bool somebody_listens(const std::string& path) {
  try {
    transport::connect_unix(path, std::chrono::milliseconds(1));  // who has no time to accept listens all the same
    return true;
  } catch (const std::system_error& error) {
    return error.code().value() != ECONNREFUSED;
  }
}

// A socket that its server left behind when it was killed.
void remove_stale_socket(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return;
  if (!S_ISSOCK(status.st_mode) || somebody_listens(path)) {
    throw std::system_error(EADDRINUSE, std::generic_category(), "socket path");
  }
  base::check_call(unlink(path.c_str()), "unlink");
}

}  // namespace

Server::Server(transport::Loop& loop, base::Log& log, ServerLimits limits)
    : loop_(loop), log_(log), limits_(limits), user_(geteuid()) {}

Server::~Server() {
  *alive_ = false;
  remove_socket_file();
}

void Server::register_methods(const std::map<std::string, Handler>& handlers) {
  for (const auto& [name, handler] : handlers) methods_.add(name, handler);
}

void Server::start(const std::string& path) {
  if (acceptor_) acceptor_->accept_all();  // who had come before the file went
  remove_stale_socket(path);
  base::Fd listener = transport::listen_unix(path);
  struct stat status {};
  base::check_call(lstat(path.c_str(), &status), "lstat");
  file_ = {.path = path, .device = status.st_dev, .inode = status.st_ino};
  start(std::move(listener));
}

void Server::start(base::Fd listener) {
  acceptor_ = std::make_unique<transport::Acceptor>(loop_, std::move(listener),
                                                    [this](base::Fd socket) { accept(std::move(socket)); });
  acceptor_->has_room = [this] { return clients_.size() < limits_.max_clients || make_room(); };
}

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
  auto each = clients_.rbegin();
  for (std::size_t left = limits_.visitors; left > 0 && each != clients_.rend(); --left, ++each) {
    Client& client = each->second;
    if (client.leaving) return nullptr;  // one is on its way
    const base::Duration stayed = now - client.since;
    if (stayed >= limits_.visit && !client.connection->owes_answer() && client.load == 0) idle = &client;
    if (stayed >= limits_.long_visit) owed = &client;
  }
  return idle != nullptr ? idle : owed;
}

void Server::send_away(Client& client) {
  client.leaving = true;
  framing::LineEncoder encoder;
  const std::string error =
      rpc::encode(rpc::Error(too_many_clients, "Too many clients", {{"limit", limits_.max_clients}}));
  client.connection->send(peer::framed(encoder, rpc::encode_error("null", error)), no_share);
  // Behind the writing, as much of it as the client takes.
  loop_.defer([this, id = client.connection->peer().connection, alive = alive_] {
    if (!*alive) return;
    if (const auto found = clients_.find(id); found != clients_.end()) found->second.connection->close();
  });
}

void Server::set_full(bool full) {
  if (std::exchange(full_, full) != full && on_full) on_full(full);
}

void Server::accept(base::Fd socket) {
  const transport::PeerIdentity identity = transport::identity_of(socket.get());
  if (identity.uid != user_ && identity.uid != 0) {
    log_.warn("Connection of another user refused", {{"uid", identity.uid}, {"pid", identity.pid}});
    return;
  }
  admit(std::make_unique<transport::FdChannel>(loop_, std::move(socket)), identity);
}

void Server::admit(std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity) {
  const std::uint64_t id = ++last_id_;
  ConnectionEvents events;
  events.on_closed = [this, id](Ending) {
    loop_.defer([this, id, alive = alive_] {
      if (*alive) forget(id);
    });
  };
  events.on_load_changed = [this, id] { weigh(id); };
  const Peer peer{.connection = id, .pid = identity.pid, .uid = identity.uid};
  if (wrap_channel) channel = wrap_channel(std::move(channel), peer);
  auto connection = std::make_unique<Connection>(loop_, std::move(channel), Door::socket, methods_, log_,
                                                 std::move(events), limits_.connection, peer, pool_);
  Connection& opened = *connection;
  clients_.emplace(id, Client{.connection = std::move(connection), .since = loop_.now()});
  if (share_ != no_share) opened.limit_waiting(share_);
  if (on_opened) on_opened(opened);
  opened.open();
}

void Server::forget(std::uint64_t id) {
  const auto found = clients_.find(id);
  total_load_ -= found->second.load;
  clients_.erase(found);
  if (on_forgotten) on_forgotten(id);
  share_what_is_left();
  if (acceptor_) acceptor_->resume();
  if (clients_.size() + limits_.visitors <= limits_.max_clients) set_full(false);
  if (clients_.empty() && on_empty) on_empty();
}

void Server::weigh(std::uint64_t id) {
  Client& client = clients_.at(id);
  const std::size_t load = client.connection->load();
  total_load_ = total_load_ - client.load + load;
  client.load = load;
  share_what_is_left();
  if (on_load_changed) on_load_changed(*client.connection);
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
  for (auto& [id, client] : clients_) client.connection->limit_waiting(share);
}

std::string Server::framed(std::string_view method, std::string_view params) {
  framing::LineEncoder encoder;
  return peer::framed(encoder, rpc::encode_notification(rpc::quoted(method), params));
}

std::size_t Server::broadcast(std::string_view method, std::string_view params) {
  const std::string message = framed(method, params);
  const std::size_t most_unread = std::min(limits_.max_unread_broadcast, share_);
  std::size_t missed = 0;
  for (auto& [id, client] : clients_) {
    if (client.connection->is_closed() || client.connection->send(message, most_unread)) continue;
    ++missed;
    if (on_missed) on_missed(*client.connection);
  }
  return missed;
}

void Server::stop() {
  acceptor_.reset();
  remove_socket_file();
  for (auto& [id, client] : clients_) client.connection->stop();
}

bool Server::is_file_ours() const {
  struct stat status {};
  return lstat(file_.path.c_str(), &status) == 0 && status.st_dev == file_.device && status.st_ino == file_.inode;
}

bool Server::is_reachable() const { return file_.path.empty() || is_file_ours(); }

void Server::remove_socket_file() {
  if (file_.path.empty()) return;
  if (is_file_ours()) unlink(file_.path.c_str());
  file_ = {};
}

}  // namespace duet::peer
