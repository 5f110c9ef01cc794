#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "duet/base/lifetime.h"
#include "duet/transport/channel.h"
#include "duet/transport/loop.h"
#include "duet/transport/tls_failure.h"
#include "duet/transport/tls_session.h"

namespace duet::transport {

/// What the owner of a TLS channel wants to hear. All optional.
struct TlsEvents {
  std::function<void()> on_open = {};  ///< the handshake is done
  /// Once. It may come after on_open(), since a server refuses a client's certificate only when the client's handshake
  /// is done. Nothing can be read or written any more. The channel must not be destroyed in this call, only later.
  std::function<void(const TlsFailure&)> on_failed = {};
};

/// A channel inside TLS, over another channel; the server's side or the client's, as its session is.
///
/// start() begins the handshake. The listener may be there before that is done: until then nothing can be read or
/// written. A server's steps run on other threads, since some take milliseconds; the bytes afterwards on the loop's.
/// The peer's close_notify is the end of the input; the end of the transport without it is ECONNRESET. close() sends
/// what waits and close_notify after it, and lets the peer read them. It holds what one write() has taken (64 KiB),
/// what one read of the transport brought, and up to 64 KiB of answers to requests for new keys; a peer that asks for
/// more without reading is not read any more. For the loop's thread only.
class TlsChannel final : public Channel, private Channel::Listener {
 public:
  static constexpr std::chrono::seconds handshake_patience{10};

  /// `place` is kept until the transport is closed, which may be a second after this has ended.
  TlsChannel(Loop& loop, std::unique_ptr<Channel> transport, std::unique_ptr<TlsSession> session, TlsEvents events = {},
             std::shared_ptr<void> place = {});
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;
  ~TlsChannel() override;

  void start(base::Duration patience = handshake_patience);
  /// It goes to another owner, who goes by reads and writes. Not from inside what it tells.
  void tell_nobody() { events_ = {}; }
  /// A step of the handshake is under way: it is not the peer that is waited for.
  bool is_busy() const { return busy_; }
  /// Not while it is busy.
  const TlsSession& session() const { return *session_; }

  void open(Channel::Listener& listener) override;
  void want(bool reading, bool writing) override;
  IoResult read(std::span<char> into) override;
  IoResult write(std::string_view bytes) override;
  void end_output() override;
  void close() override;
  /// Closes it at once: what waits is not sent.
  void cut();

 private:
  void on_readable() override;
  void on_writable() override;
  void on_hangup() override;

  bool is_shaking_hands() const { return !session_->is_open() && !session_->failure(); }
  std::size_t receive();
  void step();
  void stepped();
  void fail(TlsFailure failure);
  void tell_failure();
  bool flush();
  bool has_news() const;
  bool has_spoken() const;
  void call_later();
  void call_listener();
  void update_wants();
  IoResult broken();

  Loop& loop_;
  std::shared_ptr<void> place_;
  std::unique_ptr<Channel> transport_;
  std::shared_ptr<TlsSession> session_;  // while it is busy, that of another thread
  TlsEvents events_;
  Channel::Listener* listener_ = nullptr;
  bool reading_ = false;  // what the listener wants
  bool writing_ = false;
  bool busy_ = false;
  bool closed_ = false;
  bool told_failure_ = false;
  bool told_end_ = false;
  bool transport_ended_ = false;
  bool ends_output_ = false;
  Loop::Timer patience_;
  Loop::Deferred calling_;
  base::Lifetime lifetime_;
};

}  // namespace duet::transport
