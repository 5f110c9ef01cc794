#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/certificates/certificate.h"
#include "app/certificates/revocations.h"

namespace duet::app {

/// The CA of the folder `tls`, able to sign.
struct Authority {
  std::vector<X509Owner> certificates;  ///< all of ca.pem: a CA that is being replaced may stand there, too
  KeyPair signing;                      ///< the one of them whose key is ca.key
};

/// Throws Failure, with what to do, if there is none or it cannot sign now: no key, another's key, expired.
Authority load_authority(const std::string& folder, base::UtcTime now);

/// What the folder `tls` holds.
struct Holdings {
  std::vector<X509Owner> authorities = {};
  std::vector<Certificate> authority_facts = {};  ///< of each of them
  std::optional<Certificate> server = {};
  std::vector<Certificate> clients = {};  ///< those that were made here and that one of the CAs has signed, by name
  std::string revoked_text = {};
  Revocations revoked = {};
  std::vector<std::string> notes = {};  ///< what of it is left out, and why: one line each

  /// Those of a name.
  std::vector<Certificate> clients_called(std::string_view name) const;
};

/// The folder need not exist; `revoked` may be elsewhere. Throws Failure if the CA or that list cannot be read; of
/// other files there is a note.
Holdings read_holdings(const std::string& folder, const std::string& revoked = "revoked");

/// Where the clients' certificates are kept, without their keys, by their serial numbers.
inline constexpr std::string_view issued_folder = "issued";

}  // namespace duet::app
