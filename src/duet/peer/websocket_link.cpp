#include "duet/peer/websocket_link.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "duet/framing/websocket.h"

namespace duet::peer {
namespace {

constexpr base::Duration between_looks = std::chrono::seconds(1);

base::TimePoint later(base::TimePoint time, base::Duration wait) {
  return wait < base::TimePoint::max() - time ? time + wait : base::TimePoint::max();
}

}  // namespace

void WebSocketLink::begin_silence(base::TimePoint now, bool is_quiet) {
  heard_at_ = now;
  is_quiet_ = is_quiet;
  heard_ = false;
  pinged_at_.reset();
}

void WebSocketLink::send_pong() {
  const bool one_is_ahead = pong_ahead_ > 0 && !output_.empty();
  if (!pong_ || one_is_ahead) return;
  output_.add_framed(framing::pong_frame(*pong_));
  pong_ahead_ = output_.size();
  pong_.reset();
}

void WebSocketLink::written(std::size_t count) {
  wrote_ = true;
  ping_ahead_ -= std::min(ping_ahead_, count);
  if (close_is_sent_ && !peer_has_closed_ && output_.empty()) end_at_.reset();  // from here on the answer can come
  pong_ahead_ -= std::min(pong_ahead_, count);
  if (pong_) send_pong();
}

void WebSocketLink::send_close() {
  pong_ahead_ = 0;
  send_pong();
  output_.add_framed(framing::close_frame(close_payload_));
  close_is_sent_ = true;
}

base::TimePoint WebSocketLink::deadline() const {
  if (close_is_sent_) return end_at_.value_or(base::TimePoint());
  if (!heard_at_) return base::TimePoint();  // the clock has to be started
  if (!is_quiet_) return later(*heard_at_, std::min(between_looks, protocol_.ping_after));
  return pinged_at_ ? later(*pinged_at_, patience_with_pong()) : later(*heard_at_, protocol_.ping_after);
}

// Counted from our Ping, since we may be late ourselves.
base::Duration WebSocketLink::patience_with_pong() const {
  return std::max(protocol_.drop_after - protocol_.ping_after, base::Duration::zero());
}

bool WebSocketLink::tick(base::TimePoint now, bool reads) {
  if (close_is_sent_) {
    // Who has said Close, or has not got ours yet, gets the time to read what is there for it.
    const bool has_ours = output_.empty() && !peer_has_closed_;
    if (!end_at_) end_at_ = later(now, has_ours ? protocol_.close_patience : protocol_.drop_after);
    return now < *end_at_;
  }
  if (heard_ || !reads || !heard_at_) {
    begin_silence(now, !heard_);
    return true;
  }
  is_quiet_ = true;
  if (pinged_at_) {
    // Who reads is there: our Ping stands behind much that is on its way to him.
    if (std::exchange(wrote_, false) && is_behind_much_) {
      pinged_at_ = now;
      is_behind_much_ = ping_ahead_ > 0;
    }
    return now < later(*pinged_at_, patience_with_pong());
  }
  if (now >= later(*heard_at_, protocol_.ping_after)) {
    pinged_at_ = now;
    is_behind_much_ = !output_.empty();
    wrote_ = false;
    output_.add_framed(framing::ping_frame());
    ping_ahead_ = output_.size();
  }
  return true;
}

}  // namespace duet::peer
