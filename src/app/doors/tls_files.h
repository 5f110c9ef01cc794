#pragma once

#include <exception>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/project/failure.h"
#include "app/settings/door_settings.h"
#include "duet/base/clock.h"
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

/// What is in them, read and checked as far as one file goes. `in_force`: as for read_revoked(). Throws
/// std::runtime_error with the file's name; if only the list of revoked certificates is at fault, that is a
/// RevokedFault.
transport::TlsContext::Server read_tls_files(const TlsFiles& files, const std::set<std::string>& in_force = {});
/// The same for the files of the settings; `folder` may be empty, and then nothing can be read.
transport::TlsContext::Server read_tls_files(const TlsSettings& settings, const std::string& folder,
                                             const std::set<std::string>& in_force = {});
/// Why no TLS door can be opened with these settings, as far as the files tell; empty: one can.
std::string why_no_tls_door(const TlsSettings& settings, const std::string& folder,
                            const std::set<std::string>& in_force = {});
/// The same for what went wrong. If a `cert` command was interrupted there, it says so: that may be why the files do
/// not go together.
std::string why_no_tls_door(const std::exception& fault, const std::string& folder);
inline constexpr const char* no_tls_door = "the TLS door cannot be opened: ";  ///< so it begins

/// The fingerprints in that file: one a line, `#` begins a comment. A file that is not there has none; but if some of
/// it are `in_force` already, that is a fault: a folder that is not mounted must let nobody in again. Throws
/// RevokedFault.
std::set<std::string> read_revoked(const std::string& file, const std::set<std::string>& in_force = {});

/// People are told from 30 days before.
bool ends_soon(const transport::TlsCertificate& certificate, base::UtcTime now);
/// The authorities for which that is so, and that no other one of the same name takes the place of.
std::vector<transport::TlsCertificate> ending_authorities(const std::vector<transport::TlsCertificate>& authorities,
                                                          base::UtcTime now);
inline constexpr std::string_view cure_of_authority =
    "'duet-rpc cert init --force NAME…' makes a new CA, and every client needs a new identity then";

}  // namespace duet::app
