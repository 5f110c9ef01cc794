#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "duet/transport/openssl.h"
#include "duet/transport/tls_context.h"

namespace duet::transport {

/// A client of TLS that asks for new keys whenever a test wants it to, which a TlsSession never does.
class TlsKeyUpdater {
 public:
  explicit TlsKeyUpdater(std::shared_ptr<const TlsContext> context)
      : context_(std::move(context)),
        ssl_(openssl().SSL_new(context_->get())),
        input_(openssl().BIO_new(openssl().BIO_s_mem())),
        output_(openssl().BIO_new(openssl().BIO_s_mem())) {
    openssl().SSL_set_bio(ssl_.get(), input_, output_);
    openssl().SSL_set_connect_state(ssl_.get());
  }

  void receive(std::string_view bytes) {
    if (!bytes.empty()) openssl().BIO_write(input_, bytes.data(), static_cast<int>(bytes.size()));
  }
  bool shake_hands() { return openssl().SSL_do_handshake(ssl_.get()) == 1; }
  void ask_for_keys(int times) {
    for (int i = 0; i < times; ++i) {
      openssl().SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED);
      openssl().SSL_do_handshake(ssl_.get());
    }
  }
  void write(std::string_view bytes) { openssl().SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())); }
  /// What it has to send.
  std::string take() {
    std::string bytes;
    char piece[4096];
    for (int count = 0; (count = openssl().BIO_read(output_, piece, sizeof piece)) > 0;)
      bytes.append(piece, static_cast<std::size_t>(count));
    return bytes;
  }

 private:
  std::shared_ptr<const TlsContext> context_;
  std::unique_ptr<SSL, OpenSslDelete<&OpenSsl::SSL_free>> ssl_;
  BIO* input_;  // both are the session's
  BIO* output_;
};

}  // namespace duet::transport
