#include "app/doors/tls_files.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "app/certificates/revocations.h"
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

}  // namespace

TlsFiles files_of(const TlsSettings& settings, const std::string& folder) {
  const auto in_folder = [&](const std::string& name) { return (std::filesystem::path(folder) / name).string(); };
  return {.certificate = in_folder(settings.certificate),
          .key = in_folder(settings.key),
          .clients_ca = in_folder(settings.clients_ca),
          .revoked = in_folder(settings.revoked)};
}

transport::TlsContext::Server read_tls_files(const TlsFiles& files) {
  return {.certificate = transport::read_pem_file(files.certificate, false),
          .key = transport::read_pem_file(files.key, true),
          .clients_ca = transport::read_pem_file(files.clients_ca, false),
          .revoked = read_revoked(files.revoked),
          .protocols = {"duet-rpc/1", "http/1.1"}};
}

std::set<std::string> read_revoked(const std::string& file) {
  if (access(file.c_str(), F_OK) != 0 && errno == ENOENT) return {};
  Revocations revoked = parse_revocations(text_of_list(file));
  if (const std::string fault = fault_of_revoked(revoked, file); !fault.empty()) throw RevokedFault(fault);
  return std::move(revoked.fingerprints);
}

}  // namespace duet::app
