#pragma once

#include <string_view>
#include <vector>

#include "app/client/far_place.h"
#include "app/project/failure.h"
#include "duet/transport/tls_certificate.h"
#include "duet/transport/tls_failure.h"

namespace duet::app {

/// Who we are, as far as a refusal of it has to be explained.
struct ShownIdentity {
  transport::TlsCertificate own = {};
  std::vector<transport::TlsCertificate> authorities = {};  ///< that it trusts
};

/// What it means for the user of a command that TLS with a daemon of another machine did not come about: one line that
/// says why and what to do, and the exit code. Only what may be otherwise the next time has another one than
/// exit_code::failed.
Failure failure_of_tls(const transport::TlsFailure& failure, const FarPlace& place, std::string_view program,
                       const ShownIdentity& identity);

}  // namespace duet::app
