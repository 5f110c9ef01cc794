#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "duet/base/clock.h"
#include "duet/transport/openssl.h"

namespace duet::transport {

using X509Handle = std::unique_ptr<X509, OpenSslDelete<&OpenSsl::X509_free>>;
using KeyHandle = std::unique_ptr<EVP_PKEY, OpenSslDelete<&OpenSsl::EVP_PKEY_free>>;

/// What a certificate says, as text.
struct TlsCertificate {
  std::string name;         ///< the subject's common name; empty: it has none that could be shown
  std::string subject;      ///< all of it
  std::string issuer;       ///< all of its name
  std::string fingerprint;  ///< SHA-256, 64 lower-case hexadecimal digits
  base::UtcTime not_before;
  base::UtcTime not_after;
  std::vector<std::string> dns_names;  ///< of its alternative names, and so are the next two
  std::vector<std::string> addresses;  ///< `192.0.2.7`, `2001:db8::7`
  std::vector<std::string> uris;
};

TlsCertificate describe(const X509& certificate);
std::string fingerprint_of(const X509& certificate);

/// The certificate as it is sent, and back; null: it is none.
std::string der_of(const X509& certificate);
X509Handle x509_of(std::string_view der);

/// A text with certificates and keys, and its name for messages.
struct PemText {
  std::string name;
  std::string text;
};

/// Whatever else stands there is passed over. Throws std::runtime_error: a block is damaged, or a key is encrypted.
std::vector<X509Handle> certificates_in(const PemText& pem);
std::vector<KeyHandle> keys_in(const PemText& pem);

/// Reads a file of at most 1 MiB. `secret`: refuses one that others than its owner may read or write, or that is of
/// another user than us and root. Throws std::runtime_error, with the name in it.
PemText read_pem_file(const std::string& path, bool secret);

}  // namespace duet::transport
