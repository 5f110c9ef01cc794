#include "app/certificates/certificate.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

#include "app/words/role_names.h"

namespace duet::app {
namespace {

using transport::openssl;
using NamesOwner = OpenSslOwner<GENERAL_NAMES, &transport::OpenSsl::GENERAL_NAMES_free>;
using Pkcs12Owner = OpenSslOwner<PKCS12, &transport::OpenSsl::PKCS12_free>;

constexpr std::string_view uri_mark = "URI:";

std::string_view bytes_of(const ASN1_STRING* text) {
  // The library's bytes are unsigned; these are the same.
  return {reinterpret_cast<const char*>(openssl().ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(openssl().ASN1_STRING_length(text))};
}

void free_bytes(void* bytes) { openssl().CRYPTO_free(bytes, "", 0); }

std::string common_name(const X509& certificate) {
  X509_NAME* const subject = openssl().X509_get_subject_name(&certificate);
  const int place = openssl().X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (place < 0) return "";
  const auto* const entry = openssl().X509_NAME_get_entry(subject, place);
  unsigned char* utf8 = nullptr;
  const int size = openssl().ASN1_STRING_to_UTF8(&utf8, openssl().X509_NAME_ENTRY_get_data(entry));
  if (size < 0) return "";
  const std::unique_ptr<unsigned char, void (*)(void*)> owner(utf8, free_bytes);
  return {reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size)};
}

std::string whole_name(const X509_NAME* name) {
  const BioOwner bio = writing_bio();
  openssl().X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253 & ~static_cast<unsigned long>(ASN1_STRFLGS_ESC_MSB));
  return text_of(*bio);
}

// The year 9999 stands for never, and does not fit.
std::optional<base::UtcTime> time_of(const ASN1_TIME* time) {
  constexpr std::time_t latest = 9'000'000'000;
  std::tm fields{};
  if (openssl().ASN1_TIME_to_tm(time, &fields) != 1) return std::nullopt;
  return std::chrono::system_clock::from_time_t(std::clamp(timegm(&fields), -latest, latest));
}

std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
  }
  return out;
}

std::string fingerprint_of(const X509& certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  check_openssl(openssl().X509_digest(&certificate, openssl().EVP_sha256(), digest.data(), &size), "SHA-256");
  return hexadecimal({reinterpret_cast<const char*>(digest.data()), size});
}

std::string serial_of(const X509& certificate) {
  const ASN1_INTEGER* const serial = openssl().X509_get0_serialNumber(&certificate);
  const bool negative = (serial->type & V_ASN1_NEG) != 0;
  const std::string digits = hexadecimal(bytes_of(serial));
  return (negative ? "-" : "") + (digits.empty() ? "00" : digits);
}

std::string curve_of(const EVP_PKEY& key) {
  std::array<char, 64> name{};
  if (openssl().EVP_PKEY_get_group_name(&key, name.data(), name.size(), nullptr) != 1) return "";
  const std::string_view curve = name.data();
  constexpr std::pair<std::string_view, std::string_view> known[] = {
      {"prime256v1", "P-256"}, {"secp384r1", "P-384"}, {"secp521r1", "P-521"}};
  for (const auto& [long_name, usual] : known) {
    if (curve == long_name) return " " + std::string(usual);
  }
  return " " + std::string(curve);
}

std::string key_kind(const X509& certificate) {
  const EVP_PKEY* const key = openssl().X509_get0_pubkey(&certificate);
  const char* const type = key == nullptr ? nullptr : openssl().EVP_PKEY_get0_type_name(key);
  if (type == nullptr) return "unknown";
  const std::string kind = type;
  if (kind == "EC") return kind + curve_of(*key);
  if (kind.starts_with("ED")) return kind == "ED25519" ? "Ed25519" : "Ed448";
  return kind + ' ' + std::to_string(openssl().EVP_PKEY_get_bits(key));
}

std::string address_text(std::string_view bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = bytes.size() == sizeof(in_addr) ? AF_INET : AF_INET6;
  const bool fits = family == AF_INET || bytes.size() == sizeof(in6_addr);
  return fits && inet_ntop(family, bytes.data(), text.data(), text.size()) != nullptr ? text.data()
                                                                                      : hexadecimal(bytes);
}

void add_name(Certificate& out, const GENERAL_NAME& name) {
  if (name.type == GEN_IPADD) return out.hosts.push_back(address_text(bytes_of(name.d.iPAddress)));
  const bool is_text = name.type == GEN_DNS || name.type == GEN_URI || name.type == GEN_EMAIL;
  if (!is_text) return out.others.push_back("a name of another kind");
  const std::string text(bytes_of(name.d.ia5));
  if (name.type == GEN_DNS) return out.hosts.push_back(text);
  out.others.push_back((name.type == GEN_URI ? std::string(uri_mark) : "email:") + text);
}

// What gives the role is shown as such, and not as a name.
void take_role(Certificate& out) {
  std::vector<std::string> uris;
  for (const std::string& each : out.others) {
    if (each.starts_with(uri_mark)) uris.push_back(each.substr(uri_mark.size()));
  }
  out.role = role_in(uris);
  if (!out.role.empty()) std::erase(out.others, std::string(uri_mark) + std::string(role_uri) + out.role);
}

// False: there are some, and they make no sense.
bool add_names(Certificate& out, const X509& certificate) {
  int problem = 0;
  const NamesOwner names(
      static_cast<GENERAL_NAMES*>(openssl().X509_get_ext_d2i(&certificate, NID_subject_alt_name, &problem, nullptr)));
  if (!names) return problem == -1;
  const auto* const stack = reinterpret_cast<const OPENSSL_STACK*>(names.get());
  for (int i = 0; i < openssl().OPENSSL_sk_num(stack); ++i) {
    add_name(out, *static_cast<const GENERAL_NAME*>(openssl().OPENSSL_sk_value(stack, i)));
  }
  take_role(out);
  return true;
}

void add_uses(Certificate& out, X509& certificate) {
  const std::uint32_t uses = openssl().X509_get_extended_key_usage(&certificate);
  out.ca = openssl().X509_check_ca(&certificate) == 1;
  out.for_servers = !out.ca && (uses & (XKU_SSL_SERVER | XKU_ANYEKU)) != 0;
  out.for_clients = !out.ca && (uses & (XKU_SSL_CLIENT | XKU_ANYEKU)) != 0;
}

CertificateFile::Key key_beside(std::string_view text, X509& certificate) {
  const KeyOwner key = key_in(text);
  if (!key) return is_encrypted_key(text) ? CertificateFile::Key::encrypted : CertificateFile::Key::none;
  const bool fits = openssl().X509_check_private_key(&certificate, key.get()) == 1;
  openssl().ERR_clear_error();
  return fits ? CertificateFile::Key::its_own : CertificateFile::Key::another;
}

bool is_pkcs12(std::string_view bytes) {
  const auto* place = reinterpret_cast<const unsigned char*>(bytes.data());
  return Pkcs12Owner(openssl().d2i_PKCS12(nullptr, &place, static_cast<long>(bytes.size()))) != nullptr;
}

tl::expected<CertificateFile, std::string> parse_der(std::string_view bytes) {
  const auto* place = reinterpret_cast<const unsigned char*>(bytes.data());
  CertificateFile out;
  X509Owner certificate(openssl().d2i_X509(nullptr, &place, static_cast<long>(bytes.size())));
  const bool is_other = !certificate && is_pkcs12(bytes);
  openssl().ERR_clear_error();
  if (is_other) return tl::unexpected(std::string("it is a PKCS#12 file: 'openssl pkcs12 -in FILE -nokeys' opens it"));
  if (!certificate) return tl::unexpected(std::string("it holds no certificate"));
  out.certificates.push_back(std::move(certificate));
  return out;
}

}  // namespace

std::string role_in(const std::vector<std::string>& uris) {
  std::string found;
  for (const std::string& uri : uris) {
    if (!uri.starts_with(role_uri)) continue;
    const std::string role = uri.substr(role_uri.size());
    const bool is_known = std::ranges::find(role_names, role) != role_names.end();
    if (!is_known || (!found.empty() && found != role)) return {};
    found = role;
  }
  return found;
}

std::string kind_of(const Certificate& certificate) {
  if (certificate.ca) return "ca";
  if (certificate.for_servers) return certificate.for_clients ? "server, client" : "server";
  return certificate.for_clients ? "client" : "other";
}

std::string_view state_of(const Certificate& certificate, bool revoked, base::UtcTime now) {
  if (revoked) return "revoked";
  if (now < certificate.begins) return "not yet";
  return now > certificate.ends ? "expired" : "valid";
}

tl::expected<Certificate, std::string> read_certificate(X509& certificate) {
  const auto begins = time_of(openssl().X509_get0_notBefore(&certificate));
  const auto ends = time_of(openssl().X509_get0_notAfter(&certificate));
  if (!begins || !ends) return tl::unexpected(std::string("a date in it makes no sense"));
  Certificate out{.name = common_name(certificate), .begins = *begins, .ends = *ends};
  const bool sound = add_names(out, certificate);
  add_uses(out, certificate);
  if (!sound || (openssl().X509_get_extension_flags(&certificate) & EXFLAG_INVALID) != 0) {
    openssl().ERR_clear_error();
    return tl::unexpected(std::string("an extension in it makes no sense"));
  }
  out.subject = whole_name(openssl().X509_get_subject_name(&certificate));
  out.issuer = whole_name(openssl().X509_get_issuer_name(&certificate));
  out.serial = serial_of(certificate);
  out.fingerprint = fingerprint_of(certificate);
  out.key = key_kind(certificate);
  openssl().ERR_clear_error();
  return out;
}

bool is_issued_by(X509& certificate, X509& ca) {
  EVP_PKEY* const key = openssl().X509_get0_pubkey(&ca);
  const bool is = key != nullptr && openssl().X509_check_issued(&ca, &certificate) == X509_V_OK &&
                  openssl().X509_verify(&certificate, key) == 1;
  openssl().ERR_clear_error();
  return is;
}

tl::expected<CertificateFile, std::string> parse_certificate_file(std::string_view bytes) {
  if (bytes.empty()) return tl::unexpected(std::string("it is empty"));
  if (bytes.find("-----BEGIN ") == bytes.npos) return parse_der(bytes);
  PemCertificates read = certificates_in(bytes);
  if (read.damaged) return tl::unexpected(std::string("a certificate in it is damaged"));
  if (read.certificates.empty()) {
    const bool has_key = key_in(bytes) != nullptr || is_encrypted_key(bytes);
    return tl::unexpected(
        std::string(has_key ? "it holds a private key and no certificate" : "it holds no certificate"));
  }
  CertificateFile out{.certificates = std::move(read.certificates)};
  out.key = key_beside(bytes, *out.certificates.front());
  return out;
}

}  // namespace duet::app
