#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "duet/transport/tls_certificate.h"

namespace duet::transport {

/// Why a TLS connection did not come about, or broke. `text` says it in words, on one line, without the address.
struct TlsFailure {
  enum class Kind : std::uint8_t {
    refused,      ///< the peer sent an alert; a client's certificate is refused so, often only at the first read
    certificate,  ///< we refused the peer's certificate
    no_tls,       ///< the peer's first bytes are not TLS
    timeout,      ///< of the handshake
    cut,          ///< the transport ended, or broke, without TLS having ended
    protocol,     ///< anything else that does not go together: versions, groups, damaged records
  };
  enum class Certificate : std::uint8_t { names, authority, expired, not_yet_valid, revoked, other };

  Kind kind = Kind::protocol;
  std::string text = {};
  int alert = 0;                                        ///< Kind::refused: RFC 8446, section 6
  Certificate fault = Certificate::other;               ///< Kind::certificate
  std::optional<TlsCertificate> peer_certificate = {};  ///< Kind::certificate
};

/// `certificate_revoked` and the like, as RFC 8446 has them.
std::string alert_name(int alert);

}  // namespace duet::transport
