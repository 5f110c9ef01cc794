#include "app/doors/tls_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "app/certificates/revocations.h"
#include "app/certificates/tls_folder.h"
#include "duet/transport/tls_certificate.h"

namespace duet::app {
namespace {

std::string text_of_list(const std::string& file) {
  try {
    return transport::read_pem_file(file, false).text;
  } catch (const std::runtime_error& fault) {
    throw RevokedFault(fault.what());
  }
}

// A link to nothing is there.
bool is_absent(const std::string& file) {
  struct stat status {};
  return lstat(file.c_str(), &status) != 0 && errno == ENOENT;
}

}  // namespace

TlsFiles files_of(const TlsSettings& settings, const std::string& folder) {
  const auto in_folder = [&](const std::string& name) { return (std::filesystem::path(folder) / name).string(); };
  return {.certificate = in_folder(settings.certificate),
          .key = in_folder(settings.key),
          .clients_ca = in_folder(settings.clients_ca),
          .revoked = in_folder(settings.revoked)};
}

transport::TlsContext::Server read_tls_files(const TlsFiles& files, const std::set<std::string>& in_force) {
  return {.certificate = transport::read_pem_file(files.certificate, false),
          .key = transport::read_pem_file(files.key, true),
          .clients_ca = transport::read_pem_file(files.clients_ca, false),
          .revoked = read_revoked(files.revoked, in_force),
          .protocols = {"duet-rpc/1", "http/1.1"}};
}

transport::TlsContext::Server read_tls_files(const TlsSettings& settings, const std::string& folder,
                                             const std::set<std::string>& in_force) {
  if (folder.empty())
    throw std::runtime_error("there is no place for its files: set HOME, XDG_CONFIG_HOME or DUET_RPC_CONFIG");
  return read_tls_files(files_of(settings, folder), in_force);
}

std::string why_no_tls_door(const std::exception& fault, const std::string& folder) {
  const std::string unfinished = unfinished_note(folder);
  return no_tls_door + std::string(fault.what()) + (unfinished.empty() ? "" : "; " + unfinished);
}

std::string why_no_tls_door(const TlsSettings& settings, const std::string& folder,
                            const std::set<std::string>& in_force) {
  try {
    transport::TlsContext::for_server(read_tls_files(settings, folder, in_force));
    return {};
  } catch (const std::exception& fault) {
    return why_no_tls_door(fault, folder);
  }
}

std::set<std::string> read_revoked(const std::string& file, const std::set<std::string>& in_force) {
  if (is_absent(file)) {
    if (in_force.empty()) return {};
    throw RevokedFault(file +
                       ": this list of revoked certificates was in force and is gone: bring it back, or make an "
                       "empty one if nobody is to be refused any more");
  }
  Revocations revoked = parse_revocations(text_of_list(file));
  if (const std::string fault = fault_of_revoked(revoked, file); !fault.empty()) throw RevokedFault(fault);
  return std::move(revoked.fingerprints);
}

bool ends_soon(const transport::TlsCertificate& certificate, base::UtcTime now) {
  return certificate.not_after - now < std::chrono::hours(24 * 30);
}

std::vector<transport::TlsCertificate> ending_authorities(const std::vector<transport::TlsCertificate>& authorities,
                                                          base::UtcTime now) {
  std::vector<transport::TlsCertificate> out;
  std::ranges::copy_if(authorities, std::back_inserter(out), [&](const transport::TlsCertificate& ending) {
    return std::ranges::none_of(authorities, [&](const transport::TlsCertificate& other) {
      return other.subject == ending.subject && !ends_soon(other, now);
    });
  });
  return out;
}

}  // namespace duet::app
