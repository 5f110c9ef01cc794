#include "app/doors/http_door.h"

#include <unistd.h>

#include <chrono>
#include <utility>

namespace duet::app {
namespace {

constexpr std::size_t turned_away_at_once = 64;  // beyond the limit of connections; others wait to be accepted

}  // namespace

HttpDoorCalls calls_of_server(peer::Server& server, EventSource& events, std::function<void(std::uint64_t)> end_caller,
                              std::function<std::string()> metrics) {
  HttpDoorCalls calls;
  calls.take_websocket = [&server](std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity,
                                   std::shared_ptr<const peer::Admission> admission, std::string_view first_bytes) {
    return server.admit(std::move(channel), identity, peer::Protocol::websocket(), first_bytes, std::move(admission));
  };
  calls.begin_caller = [&server] { return server.new_number(); };
  calls.end_caller = std::move(end_caller);
  calls.events = &events;
  calls.metrics = std::move(metrics);
  return calls;
}

HttpDoor::HttpDoor(transport::Loop& loop, base::Log& log, const peer::Methods& methods, HttpDoorCalls calls,
                   HttpDoorLimits limits, HttpDoorKind kind)
    : loop_(loop),
      log_(log),
      methods_(methods),
      calls_(std::move(calls)),
      limits_(limits),
      kind_(kind),
      pool_(std::make_shared<framing::BlockPool>()),
      refusals_(loop) {}

HttpDoor::~HttpDoor() = default;

void HttpDoor::open(std::unique_ptr<transport::Acceptor> acceptor) {
  acceptor->open(*this);
  close_acceptor();
  acceptor_ = std::move(acceptor);
}

// It may be the one that has called us.
void HttpDoor::close_acceptor() {
  if (!acceptor_) return;
  acceptor_->close();
  loop_.defer([closed = std::shared_ptr<transport::Acceptor>(std::move(acceptor_))] {});
}

void HttpDoor::close_all() {
  close_acceptor();
  for (const auto& [number, client] : clients_) client->stop();
  if (calls_.mcp != nullptr) calls_.mcp->end_all(stopping_);
}

void HttpDoor::stop() {
  stopping_ = true;
  close_all();
}

void HttpDoor::end_session(const peer::Admission& ended) {
  for (const auto& [number, client] : clients_) client->end_session(ended);
}

bool HttpDoor::has_room() { return connection_count() < limits_.connections + turned_away_at_once; }

void HttpDoor::admit(std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity) {
  const std::uint64_t number = ++last_number_;
  const bool is_other = identity.uid != transport::unknown_user && identity.uid != geteuid() && identity.uid != 0;
  // Who has shown nothing makes way, the one that waits longest first.
  const bool is_crowded = connection_count() >= limits_.connections || strangers_.size() >= limits_.strangers;
  const bool is_full = connection_count() >= limits_.connections && strangers_.empty();
  if (is_crowded && !strangers_.empty()) clients_.at(*strangers_.begin())->close();
  const auto place = clients_.emplace(number, nullptr).first;
  place->second = std::make_unique<HttpClient>(*this, std::move(channel), identity, number);
  strangers_.insert(number);
  if (is_other || is_full)
    return place->second->turn_away(is_other ? framing::HttpFault::other_user : framing::HttpFault::busy);
  place->second->open();
}

void HttpDoor::take(std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity,
                    std::shared_ptr<const peer::Admission> admission, std::string_view first_bytes, bool is_full) {
  const std::uint64_t number = ++last_number_;
  const auto place = clients_.emplace(number, nullptr).first;
  place->second = std::make_unique<HttpClient>(*this, std::move(channel), identity, number, std::move(admission));
  if (is_full) return place->second->turn_away(framing::HttpFault::busy);
  place->second->open(first_bytes);
}

void HttpDoor::forget_later(std::uint64_t number) {
  strangers_.erase(number);
  gone_.push_back(number);
  if (!forgetting_) forgetting_ = loop_.deferred([this] { forget_gone(); });
}

void HttpDoor::forget_gone() {
  for (const std::uint64_t number : std::exchange(gone_, {})) clients_.erase(number);
  if (acceptor_) acceptor_->resume();
  if (stopping_ && connection_count() == 0 && calls_.on_empty) calls_.on_empty();
}

void HttpDoor::connection_gone(std::uint64_t number) {
  if (websockets_.erase(number) == 0) return;
  if (acceptor_) acceptor_->resume();
  if (stopping_ && connection_count() == 0 && calls_.on_empty) calls_.on_empty();
}

bool HttpDoor::reserve(std::uint64_t bytes) {
  if (reserved_ + bytes > limits_.body_bytes) return false;
  reserved_ += bytes;
  return true;
}

void HttpDoor::log_refusal(const transport::PeerIdentity& identity, const framing::HttpRefusal& refusal) {
  if (!refusals_.may_log()) return;
  log_.warn("Request refused", {{"door", kind_.door},
                                {"peer", identity.address ? identity.address->text() : std::string()},
                                {"status", refusal.status},
                                {"reason", refusal.word}});
}

std::unique_ptr<RpcExchange> HttpDoor::begin_exchange(std::string_view message,
                                                      const std::shared_ptr<const peer::Admission>& admission,
                                                      std::function<void()> answered) {
  const std::uint64_t caller = calls_.begin_caller();
  peer::Peer peer{.connection = caller};
  peer.admission = admission;
  return std::make_unique<RpcExchange>(loop_, log_, RpcExchange::Served{methods_}, peer, pool_, message,
                                       std::move(answered), [this, caller] { calls_.end_caller(caller); });
}

std::unique_ptr<RpcExchange> HttpDoor::begin_mcp(std::string_view message, McpCaller caller,
                                                 std::function<void()> answered) {
  const std::uint64_t number = calls_.begin_caller();
  caller.number = number;
  peer::Peer peer{.connection = number};
  peer.admission = caller.admission;
  const McpSource::Place place = calls_.mcp->begin(std::move(caller));
  const RpcExchange::Served served{.methods = place.methods, .protocol = place.protocol, .warns = false};
  return std::make_unique<RpcExchange>(loop_, log_, served, peer, pool_, message, std::move(answered), [this, number] {
    calls_.mcp->end(number);
    calls_.end_caller(number);
  });
}

void HttpDoor::take_websocket(std::uint64_t number, std::unique_ptr<transport::Channel> channel,
                              const transport::PeerIdentity& identity, std::shared_ptr<const peer::Admission> admission,
                              std::string_view first_bytes) {
  forget_later(number);
  websockets_.insert(calls_.take_websocket(std::move(channel), identity, std::move(admission), first_bytes));
}

}  // namespace duet::app
