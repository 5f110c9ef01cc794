#include "app/doors/tls_files.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
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

transport::TlsContext::Server read_tls_files(const TlsSettings& settings, const std::string& folder) {
  if (folder.empty())
    throw std::runtime_error("there is no place for its files: set HOME, XDG_CONFIG_HOME or DUET_RPC_CONFIG");
  return read_tls_files(files_of(settings, folder));
}

std::string why_no_tls_door(const std::exception& fault, const std::string& folder) {
  const std::string unfinished = unfinished_note(folder);
  return no_tls_door + std::string(fault.what()) + (unfinished.empty() ? "" : "; " + unfinished);
}

std::string why_no_tls_door(const TlsSettings& settings, const std::string& folder) {
  try {
    transport::TlsContext::for_server(read_tls_files(settings, folder));
    return {};
  } catch (const std::exception& fault) {
    return why_no_tls_door(fault, folder);
  }
}

std::set<std::string> read_revoked(const std::string& file) {
  if (access(file.c_str(), F_OK) != 0 && errno == ENOENT) return {};
  Revocations revoked = parse_revocations(text_of_list(file));
  if (const std::string fault = fault_of_revoked(revoked, file); !fault.empty()) throw RevokedFault(fault);
  return std::move(revoked.fingerprints);
}

}  // namespace duet::app
