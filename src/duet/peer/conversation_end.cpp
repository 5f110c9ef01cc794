// How a conversation ends: by us, and with a WebSocket by a Close from either end.

#include <optional>
#include <string>
#include <utility>

#include "duet/framing/frame.h"
#include "duet/framing/websocket.h"
#include "duet/peer/conversation.h"
#include "duet/peer/dispatcher.h"
#include "duet/peer/output.h"
#include "duet/peer/websocket_link.h"

namespace duet::peer {
namespace {

constexpr std::uint16_t going_away = 1001;

}  // namespace

void Conversation::stop() {
  if (phase_ >= Phase::closing) return;
  if (link_ && phase_ == Phase::open) link_->plan_close(framing::close_payload(going_away, {}));
  phase_ = Phase::stopping;
  dispatcher_->forget_waiting();
  wake();
}

void Conversation::close_with(std::uint16_t code, std::string_view reason) {
  if (phase_ < Phase::closing) end_at_once(framing::close_payload(code, reason));
}

// The Close follows when whoever runs now has answered.
void Conversation::end_at_once(std::string close_payload) {
  phase_ = Phase::stopping;
  if (link_) link_->plan_close(std::move(close_payload));
  dispatcher_->abandon();
  wake();
}

bool Conversation::is_over() const {
  const bool nothing_waits = !dispatcher_->owes_answer() && !dispatcher_->has_work() && output_->empty();
  if (link_) return nothing_waits && phase_ == Phase::closing && link_->peer_has_closed();
  return nothing_waits && (phase_ == Phase::stopping || phase_ == Phase::ending);
}

void Conversation::close() {
  if (phase_ == Phase::closed) return;
  phase_ = Phase::closed;
  dispatcher_->abandon();
  end_failed_calls();
  output_->clear();
  wake();
}

void Conversation::handle_control() {
  const framing::Control control = decoder_->control();
  if (control.kind == framing::Control::Kind::close) {
    link_->take_close();
    if (phase_ == Phase::open) end_at_once(std::string(control.payload.substr(0, 2)));  // the same code back
  } else if (phase_ == Phase::open) {
    link_->take_ping(control.payload);
    link_->send_pong();  // before what comes behind the Ping is answered
  }
}

void Conversation::end_link_read(base::TimePoint now) {
  if (close_is_due()) send_close();
  if (link_->hear(now)) wake();
}

bool Conversation::close_is_due() const {
  return link_ && phase_ == Phase::stopping && !dispatcher_->owes_answer() && !dispatcher_->has_work();
}

void Conversation::send_close() {
  decoder_->drop_partial();
  link_->send_close();
  phase_ = Phase::closing;
}

}  // namespace duet::peer
