#pragma once

#include <set>
#include <string>

#include "app/project/failure.h"
#include "app/settings/door_settings.h"
#include "duet/transport/tls_context.h"

namespace duet::app {

/// The files of `[tls]`, with absolute names.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string clients_ca;
  std::string revoked;
};

/// Names that are relative stand in `folder`.
TlsFiles files_of(const TlsSettings& settings, const std::string& folder);

/// The list of revoked certificates cannot be read.
struct RevokedFault : Failure {
  using Failure::Failure;
};

/// What is in them, read and checked as far as one file goes. Throws std::runtime_error with the file's name; if only
/// the list of revoked certificates is at fault, that is a RevokedFault.
transport::TlsContext::Server read_tls_files(const TlsFiles& files);
/// The fingerprints in that file: one a line, `#` begins a comment. None if it is not there. Throws RevokedFault.
std::set<std::string> read_revoked(const std::string& file);

}  // namespace duet::app
