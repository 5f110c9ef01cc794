#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "duet/transport/openssl.h"
#include "duet/transport/tls_certificate.h"

namespace duet::transport {

/// What one end of TLS shows, and whom it trusts: certificate, key, authorities. Never changed; sessions share it, on
/// any thread.
///
/// TLS 1.3 only, X25519 and P-256, no tickets, no resumption, no early data. A peer's certificate must chain to one of
/// the authorities with at most one between, be valid now, be for its purpose, have a key of at least 2048 bits (RSA)
/// or 256 (EC), and not be revoked; nor may an authority above it. Both ends must show one.
class TlsContext {
 public:
  struct Server {
    PemText certificate;  ///< and those between it and its authority, in any order
    PemText key;
    PemText clients_ca;
    std::set<std::string> revoked = {};         ///< by fingerprint_of()
    std::vector<std::string> protocols = {};    ///< ALPN: who offers some and none of these is refused
    bool may_have_expired = false;              ///< one that is in use already
    std::size_t most_certificates = 16 * 1024;  ///< bytes that a client may send of them
  };
  /// Throws std::runtime_error: the reason, with the name of the text. One that has expired is a fault.
  static std::shared_ptr<const TlsContext> for_server(const Server& parts);
  /// `identity`: key, certificate, and the authorities to trust, in any order. Throws std::runtime_error. Its dates are
  /// for the server to judge.
  static std::shared_ptr<const TlsContext> for_client(const PemText& identity);

  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;
  ~TlsContext();

  bool is_server() const { return is_server_; }
  const TlsCertificate& own() const { return own_; }
  /// Those that it trusts. One may have expired: then nobody gets in by it.
  const std::vector<TlsCertificate>& authorities() const { return authorities_; }

  /// Whether a client would be let in with these certificates now, its own first, as der_of() has them. None: yes.
  std::optional<std::string> refusal_of(const std::vector<std::string>& chain) const;

  // For sessions.
  /// Why a certificate was not good, in SSL_set_ex_data() 0 of a session.
  struct Refused {
    TlsCertificate shown;     ///< the peer's own
    TlsCertificate at_fault;  ///< it, or one above it; if a date is at fault, its signature was good
  };
  SSL_CTX* get() const { return context_.get(); }

 private:
  using Handle = std::unique_ptr<SSL_CTX, OpenSslDelete<&OpenSsl::SSL_CTX_free>>;

  explicit TlsContext(bool is_server);
  void show(const std::vector<X509Handle>& certificates, const std::string& name, const KeyHandle& key,
            const std::string& key_name);
  void trust(X509& authority, const std::string& name);
  static int judge(int good, X509_STORE_CTX* context);
  static int choose_protocol(SSL* session, const unsigned char** chosen, unsigned char* chosen_size,
                             const unsigned char* offered, unsigned size, void* self);

  bool is_server_;
  Handle context_;
  TlsCertificate own_;
  std::vector<TlsCertificate> authorities_;
  std::set<std::string> revoked_;
  std::vector<std::string> protocols_;
};

}  // namespace duet::transport
