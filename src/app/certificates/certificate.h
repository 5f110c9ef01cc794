#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tl/expected.hpp>

#include "app/certificates/x509.h"
#include "duet/base/clock.h"

namespace duet::app {

/// How a role is written into a client's certificate, as an alternative name of the kind URI.
inline constexpr std::string_view role_uri = "urn:duet-rpc:role:";

/// The role that these URIs among a certificate's alternative names give. Two different ones, or an unknown one, give
/// none.
std::string role_in(const std::vector<std::string>& uris);

/// What a certificate says, whoever made it. Texts are as they stand there: who shows them makes them harmless.
struct Certificate {
  std::string name;                      ///< the common name; may be empty
  std::string role = {};                 ///< by role_in(); may be empty
  std::vector<std::string> hosts = {};   ///< host names and addresses among its alternative names
  std::vector<std::string> others = {};  ///< the alternative names that are neither, as `URI:…` or `email:…`
  std::string subject = {};              ///< the whole name of its holder, as RFC 2253 writes it
  std::string issuer = {};
  std::string serial = {};       ///< in hexadecimal digits
  std::string fingerprint = {};  ///< SHA-256, in 64 lower-case hexadecimal digits
  std::string key = {};          ///< `EC P-256`, `RSA 2048`
  base::UtcTime begins = {};
  base::UtcTime ends = {};  ///< not later than the year 2255
  bool ca = false;
  bool for_servers = false;
  bool for_clients = false;
};

/// `ca`, `server`, `client`, `server, client` or `other`.
std::string kind_of(const Certificate& certificate);

/// `revoked`, `not yet`, `expired` or `valid`.
std::string_view state_of(const Certificate& certificate, bool revoked, base::UtcTime now);

/// Nothing, if something in it makes no sense: a date, an extension.
tl::expected<Certificate, std::string> read_certificate(X509& certificate);

/// Whether `ca` has signed it.
bool is_issued_by(X509& certificate, X509& ca);

/// A file that somebody has given: its certificates, in PEM or one in DER, and whether the private key of the first is
/// in it, too.
struct CertificateFile {
  enum class Key { none, encrypted, its_own, another };
  std::vector<X509Owner> certificates;
  Key key = Key::none;
};
/// Else what is wrong with it, for people: `it holds no certificate`.
tl::expected<CertificateFile, std::string> parse_certificate_file(std::string_view bytes);

}  // namespace duet::app
