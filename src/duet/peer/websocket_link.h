#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "duet/base/clock.h"
#include "duet/peer/output.h"
#include "duet/peer/protocol.h"

namespace duet::peer {

/// What a WebSocket has beside its messages: Pongs, Pings after silence, and the Close of both ends. It knows nothing
/// of messages, and of time what it is told.
///
/// While much is heard nobody has to tell the time: that something came is enough, and is looked at once a second. Only
/// the first bytes after a quiet second come with their time.
class WebSocketLink {
 public:
  WebSocketLink(const Protocol& protocol, Output& output) : protocol_(protocol), output_(output) {}
  WebSocketLink(const WebSocketLink&) = delete;
  WebSocketLink& operator=(const WebSocketLink&) = delete;

  /// The time is wanted when the next bytes come.
  bool is_quiet() const { return is_quiet_; }
  /// Bytes came. True: the deadline is another now.
  bool hear(base::TimePoint now) {
    const bool is_timed = is_quiet_ && now != base::TimePoint();
    if (is_timed) {
      begin_silence(now, false);
    } else {
      heard_ = true;
    }
    return is_timed;
  }

  /// A Ping came. Its Pong takes the place of one that still waits.
  void take_ping(std::string_view payload) { pong_ = payload; }
  /// The Pong goes out unless the one before it has not been written yet.
  void send_pong();
  void written(std::size_t count);

  /// With what the Close that comes will say. Of several the last counts.
  void plan_close(std::string payload) { close_payload_ = std::move(payload); }
  /// Our last frame.
  void send_close();
  void take_close() { peer_has_closed_ = true; }
  bool peer_has_closed() const { return peer_has_closed_; }

  base::TimePoint deadline() const;
  /// `reads`: what the peer sends could be heard. False: it has been silent for too long.
  bool tick(base::TimePoint now, bool reads);

 private:
  void begin_silence(base::TimePoint now, bool is_quiet);
  base::Duration patience_with_pong() const;

  const Protocol& protocol_;
  Output& output_;

  bool heard_ = false;                        // since the last look
  bool is_quiet_ = true;                      // nothing was heard between the last two looks
  std::optional<base::TimePoint> heard_at_;   // not before something was heard last; unknown at first
  std::optional<base::TimePoint> pinged_at_;  // since then
  std::size_t ping_ahead_ = 0;                // to be written until that Ping is
  bool is_behind_much_ = false;               // that Ping, of what was there to be written before
  bool wrote_ = false;                        // since the last look

  std::optional<std::string> pong_;
  std::size_t pong_ahead_ = 0;  // to be written until the Pong that went out last is

  std::string close_payload_;
  bool close_is_sent_ = false;
  bool peer_has_closed_ = false;
  std::optional<base::TimePoint> end_at_;  // of a peer that does not answer our Close
};

}  // namespace duet::peer
