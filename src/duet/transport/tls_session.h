#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "duet/transport/openssl.h"
#include "duet/transport/tls_certificate.h"
#include "duet/transport/tls_context.h"
#include "duet/transport/tls_failure.h"

namespace duet::transport {

/// One end of a TLS connection as bytes in, bytes out: no descriptor, no loop, no clock but that of the certificates'
/// dates.
///
/// What came from the peer is given to receive(); what output() has is to be sent. For one thread at a time, which may
/// change between calls: a step of a handshake takes up to some milliseconds, and all else microseconds.
class TlsSession {
 public:
  static std::unique_ptr<TlsSession> server(std::shared_ptr<const TlsContext> context);
  /// `host`: the name or address that must be among the alternative names of the server's certificate. `protocol`: the
  /// one to be spoken inside, by ALPN; empty: none is named.
  static std::unique_ptr<TlsSession> client(std::shared_ptr<const TlsContext> context, std::string host,
                                            std::string protocol);
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;
  ~TlsSession();

  const std::shared_ptr<const TlsContext>& context() const { return context_; }
  bool is_server() const { return context_->is_server(); }
  void receive(std::string_view bytes) { input_.append(bytes); }
  /// Nothing more comes. Unless the peer has ended TLS before, that is a failure.
  void end_of_input();
  /// Goes as far as what was received allows.
  void shake_hands();
  /// The handshake has given output() something to send, now or before.
  bool has_answered() const { return has_answered_; }
  /// The handshake is done: from here on bytes can be read and written.
  bool is_open() const { return open_; }

  /// As much as is there and as there is room for.
  std::size_t read(std::span<char> into);
  /// True: another read() may find something, or the end, without more being received.
  bool has_more() const;
  /// The peer will send nothing more (close_notify), and all that it sent has been read.
  bool is_at_end() const { return peer_ended_; }
  /// Takes at most 64 KiB at once; 0: it has failed, or ended.
  std::size_t write(std::string_view bytes);
  /// Nothing more is written: close_notify.
  void end();

  /// What is to be sent. Who has sent a part takes it off the front.
  std::string& output() { return output_; }
  const std::optional<TlsFailure>& failure() const { return failure_; }
  void fail(TlsFailure failure);

  // Once it is open.
  const TlsCertificate& peer_certificate() const { return peer_; }
  /// What the peer has sent, its own first; for TlsContext::refusal_of().
  const std::vector<std::string>& peer_chain() const { return peer_chain_; }
  /// When the first of the certificates that it was let in by ends.
  base::UtcTime trusted_until() const { return trusted_until_; }
  /// By ALPN; empty: none.
  const std::string& protocol() const { return protocol_; }

 private:
  struct Bio;
  using Handle = std::unique_ptr<SSL, OpenSslDelete<&OpenSsl::SSL_free>>;

  explicit TlsSession(std::shared_ptr<const TlsContext> context) : context_(std::move(context)) {}
  void begin();
  void name_server();
  bool looks_like_tls();
  void take_peer();
  void take_fault();
  TlsFailure certificate_failure(long verify_result);
  void forget_consumed();

  std::shared_ptr<const TlsContext> context_;
  std::string host_;
  std::string offered_;
  Handle ssl_;  // made by the first step
  std::string input_;
  std::size_t consumed_ = 0;  // of it
  std::string output_;
  int idle_records_ = 0;  // without data, since the last one with data
  bool peer_spoke_ = false;
  bool has_answered_ = false;
  bool open_ = false;
  bool peer_ended_ = false;
  bool ended_ = false;
  std::optional<TlsFailure> failure_;
  std::optional<TlsContext::Refused> refused_;
  TlsCertificate peer_;
  std::vector<std::string> peer_chain_;
  base::UtcTime trusted_until_;
  std::string protocol_;
};

}  // namespace duet::transport
