#include "simulate/client_line.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace duet::simulate {

using transport::IoResult;

ClientLine::ClientLine(transport::Loop& loop, Population& population, const Process& daemon,
                       std::shared_ptr<ClientWire> wire)
    : loop_(loop), population_(population), daemon_(daemon), wire_(std::move(wire)) {
  wire_->wake_daemon = [this] { look_soon(); };
}

ClientLine::~ClientLine() { close(); }

void ClientLine::open(Listener& listener) {
  listener_ = &listener;
  want(true, false);
}

void ClientLine::want(bool reading, bool writing) {
  reading_ = reading;
  writing_ = writing;
  look_soon();
}

IoResult ClientLine::read(std::span<char> into) {
  if (wire_->to_daemon.empty()) return {wire_->client_gone ? IoResult::State::ended : IoResult::State::blocked};
  const std::size_t count = wire_->to_daemon.copy(into.data(), into.size());
  wire_->to_daemon.erase(0, count);
  return {IoResult::State::some, count};
}

IoResult ClientLine::write(std::string_view bytes) {
  if (wire_->client_gone) return {IoResult::State::broken, 0, EPIPE};
  const std::size_t count =
      std::min(bytes.size(), wire_->capacity - std::min(wire_->capacity, wire_->to_client.size()));
  if (count == 0 || daemon_.dead) return {IoResult::State::blocked};
  wire_->to_client.append(bytes.substr(0, count));
  if (wire_->wake_client) wire_->wake_client();
  return {IoResult::State::some, count};
}

void ClientLine::close() {
  listener_ = nullptr;
  wire_->wake_daemon = {};
  if (std::exchange(wire_->daemon_gone, true)) return;
  if (wire_->wake_client) wire_->wake_client();
}

void ClientLine::look_soon() {
  if (!look_) look_ = loop_.after(population_.latency(), [this] { look(); });
}

void ClientLine::look() {
  const auto is_open = [this, is_there = lifetime_.watch()] { return is_there() && listener_ != nullptr; };
  const bool is_writable = wire_->client_gone || wire_->to_client.size() < wire_->capacity;
  if (is_open() && writing_ && is_writable) listener_->on_writable();
  if (is_open() && reading_ && (!wire_->to_daemon.empty() || wire_->client_gone)) {
    listener_->on_readable();
    if (is_open() && reading_ && (!wire_->to_daemon.empty() || wire_->client_gone)) look_soon();
  }
  if (is_open() && !reading_ && !writing_ && wire_->client_gone) listener_->on_hangup();
}

}  // namespace duet::simulate
