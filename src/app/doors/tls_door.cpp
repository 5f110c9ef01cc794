#include "app/doors/tls_door.h"

#include <span>
#include <string>
#include <utility>

namespace duet::app {
namespace {

constexpr std::size_t first_read = 16U * 1024;

bool is_upper_case(char c) { return c >= 'A' && c <= 'Z'; }

// A stranger must not choose words of our log. Whose date is at fault was signed by an authority that is trusted.
std::string_view reason_of(const transport::TlsFailure& failure) {
  using Fault = transport::TlsFailure::Certificate;
  const bool has_names = failure.kind == transport::TlsFailure::Kind::certificate && failure.fault == Fault::authority;
  return has_names ? "its certificate is of no authority that is trusted" : std::string_view(failure.text);
}

}  // namespace

/// Whoever has not said yet what it speaks.
class TlsDoor::Guest final : private transport::Channel::Listener {
 public:
  Guest(TlsDoor& door, std::uint64_t number, const transport::PeerIdentity& who)
      : identity(who), door_(door), number_(number), since_(door.loop_.now()) {}

  void begin(std::unique_ptr<transport::Channel> transport, std::shared_ptr<void> place) {
    transport::TlsEvents events{.on_open = [this] { door_.shaken(*this); },
                                .on_failed = [this](const transport::TlsFailure& why) { door_.refuse(*this, why); }};
    channel = std::make_unique<transport::TlsChannel>(door_.loop_, std::move(transport),
                                                      transport::TlsSession::server(door_.context_), std::move(events),
                                                      std::move(place));
    channel->start(door_.limits_.patience);
  }
  void await_first_byte() {
    silence_ = door_.loop_.after(door_.limits_.patience, [this] { door_.forget_later(*this); });
    channel->open(*this);
  }
  std::uint64_t number() const { return number_; }
  /// How long its peer is waited for; none while we have to do.
  base::Duration waited() const { return channel->is_busy() ? base::Duration::zero() : door_.loop_.now() - since_; }

  std::unique_ptr<transport::TlsChannel> channel;
  transport::PeerIdentity identity;
  bool leaves = false;  ///< it is forgotten later in this turn

 private:
  void on_readable() override {
    const std::span<char> room = std::span(door_.loop_.scratch()).first(first_read);
    const transport::IoResult moved = channel->read(room);
    if (moved.state == transport::IoResult::State::blocked) return;
    if (moved.state != transport::IoResult::State::some) return door_.forget_later(*this);
    door_.arrived(*this, {room.data(), moved.count}, is_upper_case(room.front()));
  }
  void on_writable() override {}
  void on_hangup() override { door_.forget_later(*this); }

  TlsDoor& door_;
  std::uint64_t number_;
  base::TimePoint since_;
  transport::Loop::Timer silence_;
};

TlsDoor::TlsDoor(transport::Loop& loop, base::Log& log, TlsDoorCalls calls, TlsDoorLimits limits)
    : loop_(loop), log_(log), calls_(std::move(calls)), limits_(limits), refusals_(loop) {}

TlsDoor::~TlsDoor() = default;

// The former acceptor may be the one that is calling us, so it is destroyed later.
void TlsDoor::open(std::unique_ptr<transport::Acceptor> acceptor) {
  acceptor->open(*this);
  std::swap(acceptor_, acceptor);
  if (!acceptor) return;
  acceptor->close();
  loop_.defer([closed = std::shared_ptr<transport::Acceptor>(std::move(acceptor))] {});
}

void TlsDoor::stop_listening() {
  if (!acceptor_) return;
  acceptor_->close();
  loop_.defer([closed = std::shared_ptr<transport::Acceptor>(std::move(acceptor_))] {});
}

void TlsDoor::close() {
  stop_listening();
  for (const auto& [number, guest] : guests_) forget_later(*guest);
}

void TlsDoor::resume() {
  if (acceptor_) acceptor_->resume();
}

void TlsDoor::turn_out(std::uint64_t number) {
  const auto found = guests_.find(number);
  if (found != guests_.end()) forget_later(*found->second);
}

TlsDoor::Guest* TlsDoor::longest_waiting() {
  for (const std::uint64_t number : shaking_) {
    Guest& guest = *guests_.at(number);
    if (guest.waited() >= limits_.moment) return &guest;
  }
  return nullptr;
}

bool TlsDoor::has_room() { return shaking_.size() < limits_.handshakes || longest_waiting() != nullptr; }

void TlsDoor::admit(std::unique_ptr<transport::Channel> channel, const transport::PeerIdentity& identity) {
  if (shaking_.size() >= limits_.handshakes) forget_later(*longest_waiting());
  const std::uint64_t number = ++last_number_;
  const auto place = guests_.emplace(number, std::make_unique<Guest>(*this, number, identity)).first;
  shaking_.insert(number);
  strangers_.insert(number);
  // The channel releases it when its connection is closed, whoever owns the channel then.
  const std::shared_ptr<void> kept(&last_number_, lifetime_.bind([this, number](void*) {
    strangers_.erase(number);
    calls_.on_gone(number);
  }));
  place->second->begin(std::move(channel), kept);
}

void TlsDoor::shaken(Guest& guest) {
  shaking_.erase(guest.number());
  strangers_.erase(guest.number());
  resume();
  calls_.on_known(guest.number(), guest.channel->session());
  if (guest.leaves) return;
  const std::string& protocol = guest.channel->session().protocol();
  if (protocol.empty()) return await_first_byte(guest);
  // Later: the channel is in the middle of its step.
  loop_.defer(lifetime_.bind([this, number = guest.number(), is_http = protocol == "http/1.1"] {
    const auto found = guests_.find(number);
    if (found != guests_.end() && !found->second->leaves) arrived(*found->second, {}, is_http);
  }));
}

void TlsDoor::await_first_byte(Guest& guest) {
  if (silent_.size() >= limits_.handshakes) forget_later(*guests_.at(*silent_.begin()));
  silent_.insert(guest.number());
  guest.await_first_byte();
}

void TlsDoor::arrived(Guest& guest, std::string_view first_bytes, bool speaks_http) {
  const std::string kept(first_bytes);  // the room that it is in belongs to whoever reads next
  std::unique_ptr<transport::TlsChannel> channel = std::move(guest.channel);
  channel->tell_nobody();
  forget_later(guest);
  calls_.on_arrived(guest.number(), std::move(channel), guest.identity, kept, speaks_http);
}

void TlsDoor::refuse(Guest& guest, const transport::TlsFailure& failure) {
  const bool is_told = failure.kind != transport::TlsFailure::Kind::cut && refusals_.may_log();
  if (is_told) {
    log_.warn("Handshake refused", {{"door", "tls"},
                                    {"peer", guest.identity.address ? guest.identity.address->text() : std::string()},
                                    {"reason", reason_of(failure)}});
  }
  forget_later(guest);
}

void TlsDoor::forget_later(Guest& guest) {
  shaking_.erase(guest.number());
  silent_.erase(guest.number());
  if (std::exchange(guest.leaves, true)) return;
  const bool is_crowd = strangers_.contains(guest.number()) && strangers_.size() > limits_.strangers;
  if (guest.channel) is_crowd ? guest.channel->cut() : guest.channel->close();
  left_.push_back(guest.number());
  if (forgetting_) return;
  forgetting_ = loop_.deferred([this] {
    for (const std::uint64_t number : std::exchange(left_, {})) guests_.erase(number);
    resume();
  });
}

}  // namespace duet::app
