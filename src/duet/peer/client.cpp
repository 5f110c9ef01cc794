#include "duet/peer/client.h"

#include <optional>
#include <utility>

#include "duet/base/log_sink.h"
#include "duet/rpc/json_text.h"
#include "duet/rpc/value.h"
#include "duet/transport/fd_channel.h"
#include "duet/transport/unix_socket.h"

namespace duet::peer {
namespace {

// What was refused stands in the data: which param, what was expected.
std::string whole_text(const rpc::Error& error) {
  constexpr std::size_t shown_characters = 300;
  if (error.data().empty()) return error.message();
  return error.message() + ": " + std::string(rpc::first_characters(error.data(), shown_characters));
}

}  // namespace

CallFailed::CallFailed(Outcome::Cause cause, std::optional<rpc::Error> error)
    : std::runtime_error(error ? whole_text(*error) : std::string(name_of(cause))),
      cause_(cause),
      error_(std::move(error)) {}

Client::Client(const Protocol& protocol)
    : own_loop_(std::make_unique<transport::Loop>()),
      loop_(*own_loop_),
      protocol_(protocol),
      log_(nullptr, base::Level::error) {}

Client::Client(transport::Loop& loop, const Protocol& protocol)
    : loop_(loop), protocol_(protocol), log_(nullptr, base::Level::error) {}

Client::~Client() { disconnect(); }

void Client::connect(const std::string& path, std::chrono::milliseconds patience) {
  connect(std::make_unique<transport::FdChannel>(loop_, transport::connect_unix(path, patience)));
}

void Client::connect(std::unique_ptr<transport::Channel> channel) {
  ConnectionEvents events;
  events.conversation.on_notification = [this](std::string_view method, std::string_view params) {
    if (on_any_) on_any_(method, params);
  };
  disconnect();
  // Not destroyed here: a callback that connects anew may have been called by it.
  if (connection_) former_.push_back(std::move(connection_));
  forgetting_ = loop_.deferred([this] { std::exchange(former_, {}); });
  connection_ = std::make_unique<Connection>(loop_, std::move(channel), protocol_, methods_, log_, std::move(events));
  connection_->open();
}

void Client::disconnect() {
  if (connection_) connection_->close();
}

Outcome Client::call_raw(std::string_view method, const rpc::Json& params, base::Duration patience) {
  if (loop_.is_turning()) throw std::logic_error("a call that waits inside a handler; use call_later()");
  const auto outcome = std::make_shared<std::optional<Outcome>>();  // it may come after something was thrown
  call_later(
      method, params, [outcome](Outcome came) { *outcome = std::move(came); }, patience);
  while (!*outcome) loop_.turn();
  return std::move(**outcome);
}

boost::json::value Client::call(std::string_view method, const rpc::Json& params, base::Duration patience) {
  return rpc::parse_value(call_or_throw(method, params, patience));
}

std::string Client::call_or_throw(std::string_view method, const rpc::Json& params, base::Duration patience) {
  Outcome outcome = call_raw(method, params, patience);
  if (outcome.cause != Outcome::Cause::answered) throw CallFailed(outcome.cause, outcome.error);
  return std::move(outcome.result);
}

void Client::call_later(std::string_view method, const rpc::Json& params, CallCallback callback,
                        base::Duration patience) {
  if (!connection_) {
    loop_.defer(
        [callback = std::move(callback)] { callback({.cause = Outcome::Cause::disconnected, .was_sent = false}); });
    return;
  }
  connection_->call(method, params, patience, std::move(callback));
}

bool Client::notify(std::string_view method, const rpc::Json& params) {
  return connection_ && connection_->notify(method, params);
}

void Client::on(std::string method, std::function<void(const rpc::Json& params)> handler) {
  methods_.add(std::move(method), std::move(handler));
}

void Client::on_any(std::function<void(std::string_view, std::string_view)> handler) { on_any_ = std::move(handler); }

bool Client::wait_for(const std::function<bool()>& done, base::Duration patience) {
  const auto expired = std::make_shared<bool>(false);
  const transport::Loop::Timer timer = loop_.after(patience, [expired] { *expired = true; });
  bool is_done = done();
  while (!is_done && !*expired && is_connected()) {
    loop_.turn();
    is_done = done();
  }
  return is_done;
}

}  // namespace duet::peer
