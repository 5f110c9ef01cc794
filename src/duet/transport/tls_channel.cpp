#include "duet/transport/tls_channel.h"

#include <array>
#include <cerrno>
#include <exception>
#include <span>
#include <system_error>
#include <utility>

#include "duet/transport/tls_farewell.h"

namespace duet::transport {
namespace {

constexpr std::size_t tls_read_at_once = 16 * 1024 + 512;  // a record and its overhead
// A write leaves half of it at most. The rest is for answers to the peer's requests for new keys: whoever asks and does
// not read is not read any more. It must be more than a write: two ends that both wait for the other to read would
// hang.
constexpr std::size_t most_output_while_reading = 128 * 1024;
constexpr std::size_t kept_output = 1024;  // bytes of memory that an idle channel keeps for it

TlsFailure cut_failure(const std::string& why) { return {.kind = TlsFailure::Kind::cut, .text = why}; }

}  // namespace

TlsChannel::TlsChannel(Loop& loop, std::unique_ptr<Channel> transport, std::unique_ptr<TlsSession> session,
                       TlsEvents events, std::shared_ptr<void> place)
    : loop_(loop),
      place_(std::move(place)),
      transport_(std::move(transport)),
      session_(std::move(session)),
      events_(std::move(events)) {}

TlsChannel::~TlsChannel() { close(); }

void TlsChannel::start(base::Duration patience) {
  patience_ = loop_.after(
      patience, [this] { fail({.kind = TlsFailure::Kind::timeout, .text = "the handshake was not done in time"}); });
  transport_->open(*this);
  if (!session_->is_server()) step();
}

// From the transport to the session, once. 0: nothing came, or it is over.
std::size_t TlsChannel::receive() {
  std::array<char, tls_read_at_once> room;
  const IoResult moved = transport_->read(room);
  switch (moved.state) {
    case IoResult::State::blocked:
      return 0;
    case IoResult::State::ended:
      transport_ended_ = true;
      session_->end_of_input();
      return 0;
    case IoResult::State::broken:
      transport_ended_ = true;
      session_->fail(cut_failure(std::generic_category().message(moved.error)));
      return 0;
    case IoResult::State::some:
      break;
  }
  session_->receive({room.data(), moved.count});
  return moved.count;
}

void TlsChannel::on_readable() {
  if (busy_) return;
  if (is_shaking_hands()) {
    if (receive() > 0) {
      // The end of a handshake has no answer, and some clients send no more until it is acknowledged (Nagle): 40 ms.
      if (session_->has_answered()) transport_->acknowledge();
      return step();
    }
    return session_->failure() ? tell_failure() : void();
  }
  if (reading_ && listener_ != nullptr) return listener_->on_readable();
}

// A client has nothing else to do meanwhile.
void TlsChannel::step() {
  if (!session_->is_server()) {
    try {
      session_->shake_hands();
    } catch (const std::exception& fault) {
      session_->fail({.text = fault.what()});
    }
    return stepped();
  }
  try {
    loop_.run_elsewhere([session = session_] { session->shake_hands(); },
                        lifetime_.bind([this](const base::Result<void>& result) {
                          busy_ = false;
                          if (!result.has_value()) session_->fail({.text = "TLS failed"});
                          stepped();
                        }));
    busy_ = true;
    transport_->want(false, false);
  } catch (const std::system_error& error) {
    fail({.text = error.what()});
  }
}

void TlsChannel::stepped() {
  if (closed_) return;
  const bool written = flush();
  if (!written) session_->fail(cut_failure("the connection was cut"));
  if (session_->failure()) return tell_failure();
  if (session_->is_open()) patience_.cancel();
  update_wants();
  if (!session_->is_open()) return;
  call_later();
  if (events_.on_open) events_.on_open();
}

void TlsChannel::fail(TlsFailure failure) {
  if (busy_) {  // its session is with another thread, and is not waited for
    if (std::exchange(told_failure_, true)) return;
    const auto on_failed = events_.on_failed;
    close();
    if (on_failed) on_failed(failure);
    return;
  }
  session_->fail(std::move(failure));
  tell_failure();
}

// What OpenSSL had to say to the peer is on its way, an alert for example.
void TlsChannel::tell_failure() {
  patience_.cancel();
  flush();
  if (std::exchange(told_failure_, true)) return;
  update_wants();
  call_later();
  if (events_.on_failed) events_.on_failed(*session_->failure());
}

void TlsChannel::open(Channel::Listener& listener) {
  listener_ = &listener;
  want(true, false);
}

void TlsChannel::want(bool reading, bool writing) {
  reading_ = reading;
  writing_ = writing;
  if (closed_ || busy_) return;
  update_wants();
  call_later();
}

void TlsChannel::update_wants() {
  if (closed_ || busy_) return;
  const bool is_over = session_->failure() || session_->is_at_end() || transport_ended_;
  const bool listens = reading_ && listener_ != nullptr && session_->output().size() <= most_output_while_reading;
  const bool reading = is_shaking_hands() || (listens && !is_over && !session_->has_more());
  transport_->want(reading, !session_->output().empty());
}

// The listener has something to hear that the transport will not tell of.
bool TlsChannel::has_news() const {
  if (session_->failure()) return true;
  return session_->has_more() || (session_->is_at_end() && !told_end_);
}

void TlsChannel::call_later() {
  if (listener_ == nullptr || busy_ || closed_ || calling_ || is_shaking_hands()) return;
  const bool writes = writing_ && (session_->output().empty() || session_->failure());
  if (writes || (reading_ && has_news())) calling_ = loop_.deferred([this] { call_listener(); });
}

void TlsChannel::call_listener() {
  const auto is_there = lifetime_.watch();
  if (writing_ && (session_->output().empty() || session_->failure())) listener_->on_writable();
  if (!is_there() || listener_ == nullptr) return;
  if (reading_ && has_news()) listener_->on_readable();
  if (!is_there() || listener_ == nullptr) return;
  call_later();
}

IoResult TlsChannel::broken() {
  tell_failure();
  const bool is_cut = session_->failure()->kind == TlsFailure::Kind::cut;
  return {IoResult::State::broken, 0, is_cut ? ECONNRESET : EPROTO};
}

bool TlsChannel::has_spoken() const {
  const std::optional<TlsFailure>& failure = session_->failure();
  if (!failure) return session_->is_open();
  return failure->kind != TlsFailure::Kind::timeout && failure->kind != TlsFailure::Kind::cut;
}

// What is there is given before what went wrong behind it. The transport is read once at most: a peer whose records
// have no data in them must not keep the loop.
IoResult TlsChannel::read(std::span<char> into) {
  if (closed_ || busy_ || is_shaking_hands()) return {};
  std::size_t count = session_->read(into);
  const bool is_over = session_->failure() || session_->is_at_end();
  if (count == 0 && !is_over && session_->output().size() <= most_output_while_reading) {
    receive();
    count = session_->read(into);
  }
  if (!flush()) session_->fail(cut_failure("the connection was cut"));
  update_wants();
  if (count > 0) {
    call_later();
    return {IoResult::State::some, count};
  }
  if (session_->failure()) return broken();
  if (!session_->is_at_end()) return {};
  told_end_ = true;
  return {IoResult::State::ended};
}

IoResult TlsChannel::write(std::string_view bytes) {
  if (closed_ || ends_output_) return {IoResult::State::broken, 0, EPIPE};
  if (busy_ || is_shaking_hands()) return {};
  if (session_->output().empty() && !session_->failure()) {
    const std::size_t count = session_->write(bytes);
    const bool sent = flush();
    if (count > 0 && sent) {
      if (!session_->output().empty()) update_wants();
      return {IoResult::State::some, count};
    }
    if (!sent) session_->fail(cut_failure("the connection was cut"));
  }
  return session_->failure() ? broken() : IoResult{};
}

// False: the transport takes nothing any more.
bool TlsChannel::flush() {
  std::string& output = session_->output();
  std::size_t sent = 0;
  while (sent < output.size()) {
    const IoResult moved = transport_->write(std::string_view(output).substr(sent));
    if (moved.state == IoResult::State::broken) return false;
    if (moved.state != IoResult::State::some) break;
    sent += moved.count;
  }
  output.erase(0, sent);
  if (!output.empty()) return true;
  if (output.capacity() > kept_output) output.shrink_to_fit();
  if (ends_output_) transport_->end_output();
  return true;
}

void TlsChannel::on_writable() {
  if (busy_) return;
  if (!flush()) session_->fail(cut_failure("the connection was cut"));
  if (session_->failure()) tell_failure();
  update_wants();
  call_later();
}

// Not before the listener has what came earlier; it is told again then.
void TlsChannel::on_hangup() {
  if (busy_ || listener_ == nullptr || is_shaking_hands()) return fail(cut_failure("the connection was cut"));
  if (reading_ && has_news()) return;
  listener_->on_hangup();
}

void TlsChannel::end_output() {
  if (closed_ || busy_ || !session_->is_open() || std::exchange(ends_output_, true)) return;
  session_->end();
  flush();
  update_wants();
}

// Who is half-way through a handshake, or silent, has nothing to read. All others have: an answer, or an alert.
void TlsChannel::close() {
  if (std::exchange(closed_, true)) return;
  listener_ = nullptr;
  patience_.cancel();
  calling_.cancel();
  if (busy_ || transport_ended_ || !has_spoken()) return transport_->close();
  const bool has_ended = ends_output_;  // and whoever did so has waited for the peer
  session_->end();
  const bool flushed = flush();
  const bool is_done = session_->output().empty() && (session_->is_at_end() || has_ended);
  if (!flushed || is_done) return transport_->close();
  see_off(loop_, std::move(transport_), std::move(session_->output()), std::move(place_));
}

void TlsChannel::cut() {
  transport_ended_ = true;
  close();
}

}  // namespace duet::transport
