#include "app/doors/tls_files.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "duet/transport/tls_certificate.h"

namespace duet::app {
namespace {

constexpr const char* blanks = " \t\r";

std::string text_of_list(const std::string& file) {
  try {
    return transport::read_pem_file(file, false).text;
  } catch (const std::runtime_error& fault) {
    throw RevokedFault(fault.what());
  }
}

std::string_view without_comment(std::string_view line) {
  line = line.substr(0, line.find('#'));
  const std::size_t first = line.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(blanks) - first + 1);
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

std::string why_no_tls_door(const TlsSettings& settings, const std::string& folder) {
  try {
    transport::TlsContext::for_server(read_tls_files(settings, folder));
    return {};
  } catch (const std::exception& fault) {
    return std::string(no_tls_door) + fault.what();
  }
}

// A line that nobody understands may be the one that matters.
std::set<std::string> read_revoked(const std::string& file) {
  if (access(file.c_str(), F_OK) != 0 && errno == ENOENT) return {};
  const std::string text = text_of_list(file);
  std::set<std::string> revoked;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view word = without_comment(std::string_view(text).substr(at, end - at));
    at = end + 1;
    ++number;
    if (word.empty()) continue;
    std::string fingerprint = fingerprint_in(word);
    if (fingerprint.empty())
      throw RevokedFault(file + ':' + std::to_string(number) +
                         ": not the SHA-256 fingerprint of a certificate, which has 64 hexadecimal digits");
    revoked.insert(std::move(fingerprint));
  }
  return revoked;
}

}  // namespace duet::app
