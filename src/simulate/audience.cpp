#include "simulate/audience.h"

#include <limits>
#include <string>
#include <utility>

namespace duet::simulate {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t everything = std::numeric_limits<std::size_t>::max();

}  // namespace

Audience::Audience(Population& population, Model& model, AsDaemon as_daemon)
    : population_(population), as_daemon_(std::move(as_daemon)), chance_(population.machine().chance().fork()) {
  listeners_.resize(chance_.below(4));
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    Listener& listener = listeners_[i];
    const bool is_slow = chance_.one_in(2);
    listener.client =
        std::make_unique<EventClient>("client " + std::to_string(i + 1), chance_.fork(), model, population.trace());
    listener.slowest = is_slow ? milliseconds(chance_.between(100, 60'000)) : milliseconds(5);
    listener.most_bytes = is_slow ? chance_.between(10, 2000) : everything;
  }
}

void Audience::act(Daemon& daemon) {
  if (listeners_.empty()) return;
  Listener& listener = listeners_[chance_.below(listeners_.size())];
  EventClient& client = *listener.client;
  if (!client.is_connected()) {
    connect(listener, daemon);
    if (!chance_.one_in(4)) client.subscribe();
  } else if (chance_.one_in(10)) {
    client.leave();
  } else {
    if (chance_.one_in(4)) client.ask_slow_thing();
    if (!chance_.one_in(4)) client.subscribe();
  }
}

void Audience::connect(Listener& listener, Daemon& daemon) {
  const std::shared_ptr<ClientWire> wire = listener.client->connect([&daemon] { return daemon.journal().oldest(); });
  listener.reading.reset();
  wire->wake_client = [this, &listener] { read_later(listener); };
  as_daemon_([&] { daemon.admit(wire); });
}

void Audience::read_later(Listener& listener) {
  if (listener.reading) return;
  listener.reading = std::make_shared<bool>(true);
  const auto wait = milliseconds(chance_.below(static_cast<std::uint64_t>(listener.slowest / milliseconds(1)) + 1));
  population_.agenda().after(wait, [this, &listener, reading = std::weak_ptr(listener.reading)] {
    if (reading.expired()) return;
    listener.reading.reset();
    listener.client->read(listener.most_bytes);
    if (listener.client->has_news()) read_later(listener);
  });
}

void Audience::daemon_is_gone(bool power_cut) {
  for (Listener& listener : listeners_) {
    listener.reading.reset();
    if (!power_cut && chance_.one_in(2)) listener.client->read(everything);
    listener.client->leave();
  }
}

void Audience::read_all() {
  for (Listener& listener : listeners_) {
    listener.slowest = milliseconds(5);
    listener.most_bytes = everything;
    listener.reading.reset();
    if (listener.client->has_news()) read_later(listener);
  }
}

void Audience::check_complete() {
  for (const Listener& listener : listeners_) listener.client->check_complete();
}

}  // namespace duet::simulate
