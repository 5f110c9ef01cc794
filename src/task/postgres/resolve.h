#pragma once

#include <string>
#include <vector>

#include "task/postgres/store_address.h"

namespace duet::task::postgres {

/// One address of one host. libpq is told both, so that it looks nothing up and still checks the certificate's name.
struct Candidate {
  std::string host;
  std::string address;  ///< empty: a Unix socket
  std::string port;

  /// `host:port` and the address if that is another, for people.
  std::string text() const;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

struct Resolved {
  std::vector<Candidate> candidates;  ///< in the order of the hosts
  std::string error;                  ///< of the last name that has no address
};

/// Looks all names up. It blocks for as long as the system's resolver does: not for a loop's thread.
///
/// `localhost` needs no TLS, so it stands for nothing but loopback, whatever the resolver says.
Resolved resolve(const std::vector<Host>& hosts);

}  // namespace duet::task::postgres
