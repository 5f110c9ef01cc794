#include "duet/transport/tls_certificate.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <limits>
#include <stdexcept>
#include <system_error>

#include "duet/base/fd.h"

namespace duet::transport {
namespace {

constexpr std::size_t longest_common_name = 256;
constexpr std::size_t largest_pem = 1024 * 1024;

using BioHandle = std::unique_ptr<BIO, OpenSslDelete<&OpenSsl::BIO_free_all>>;
using GeneralNamesHandle = std::unique_ptr<GENERAL_NAMES, OpenSslDelete<&OpenSsl::GENERAL_NAMES_free>>;

// The dates that a UtcTime is used for: its own range ends in 2262, and differences to now must fit into it, too.
constexpr std::chrono::seconds earliest_date(-2'208'988'800);  // 1900
constexpr std::chrono::seconds latest_date(9'223'372'036);     // April 2262

// A certificate without an end says 99991231235959Z.
base::UtcTime utc_of(const ASN1_TIME* time, std::chrono::seconds if_unreadable) {
  std::tm parts{};
  if (openssl().ASN1_TIME_to_tm(time, &parts) != 1) return base::UtcTime(if_unreadable);
  return base::UtcTime(std::clamp(std::chrono::seconds(timegm(&parts)), earliest_date, latest_date));
}

std::string text_of(const ASN1_STRING* text) {
  const auto* const bytes = reinterpret_cast<const char*>(openssl().ASN1_STRING_get0_data(text));
  return {bytes, static_cast<std::size_t>(openssl().ASN1_STRING_length(text))};
}

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::string common_name_of(const X509_NAME* subject) {
  const int place = openssl().X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (place < 0) return {};
  unsigned char* utf8 = nullptr;
  const int size = openssl().ASN1_STRING_to_UTF8(
      &utf8, openssl().X509_NAME_ENTRY_get_data(openssl().X509_NAME_get_entry(subject, place)));
  if (size < 0) return {};
  std::string name(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
  openssl().CRYPTO_free(utf8, __FILE__, __LINE__);
  return name.size() > longest_common_name || has_control_characters(name) ? std::string() : name;
}

// Control characters are escaped in it.
std::string whole_name(const X509_NAME* name) {
  const BioHandle out(openssl().BIO_new(openssl().BIO_s_mem()));
  constexpr unsigned long as_utf8 = XN_FLAG_RFC2253 & ~static_cast<unsigned long>(ASN1_STRFLGS_ESC_MSB);
  if (!out || openssl().X509_NAME_print_ex(out.get(), name, 0, as_utf8) < 0) return {};
  char* bytes = nullptr;
  const long size = openssl().BIO_ctrl(out.get(), BIO_CTRL_INFO, 0, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

std::string address_text(const std::string& bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = bytes.size() == sizeof(in_addr) ? AF_INET : AF_INET6;
  if (family == AF_INET6 && bytes.size() != sizeof(in6_addr)) return {};
  return inet_ntop(family, bytes.data(), text.data(), text.size());
}

void add_alternative_names(const X509& certificate, TlsCertificate& described) {
  const GeneralNamesHandle names(
      static_cast<GENERAL_NAMES*>(openssl().X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (!names) return;
  const auto* const stack = reinterpret_cast<const OPENSSL_STACK*>(names.get());
  for (int i = 0; i < openssl().OPENSSL_sk_num(stack); ++i) {
    const auto* const name = static_cast<const GENERAL_NAME*>(openssl().OPENSSL_sk_value(stack, i));
    if (name->type == GEN_DNS) described.dns_names.push_back(text_of(name->d.dNSName));
    if (name->type == GEN_URI) described.uris.push_back(text_of(name->d.uniformResourceIdentifier));
    if (name->type != GEN_IPADD) continue;
    if (std::string address = address_text(text_of(name->d.iPAddress)); !address.empty())
      described.addresses.push_back(std::move(address));
  }
}

BioHandle bio_of(std::string_view text) {
  if (text.size() > largest_pem) throw std::runtime_error("too large");
  BioHandle bio(openssl().BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  if (!bio) throw std::bad_alloc();
  return bio;
}

struct PemBlock {
  std::string kind;
  std::string der;
};

std::string taken(char* text, long size) {
  std::string copy(text, static_cast<std::size_t>(size));
  openssl().CRYPTO_free(text, __FILE__, __LINE__);
  return copy;
}

std::vector<PemBlock> blocks_in(const PemText& pem) {
  const BioHandle bio = bio_of(pem.text);
  openssl().ERR_clear_error();
  std::vector<PemBlock> blocks;
  char* kind = nullptr;
  char* header = nullptr;
  unsigned char* der = nullptr;
  long size = 0;
  while (openssl().PEM_read_bio(bio.get(), &kind, &header, &der, &size) == 1) {
    const std::string headers = taken(header, static_cast<long>(std::string_view(header).size()));
    blocks.push_back(
        {taken(kind, static_cast<long>(std::string_view(kind).size())), taken(reinterpret_cast<char*>(der), size)});
    if (headers.find("ENCRYPTED") != std::string::npos) blocks.back().kind.insert(0, "ENCRYPTED ");
  }
  const unsigned long error = openssl().ERR_peek_last_error();
  const bool is_end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  const std::string why = openssl_error();
  if (!is_end) throw std::runtime_error(pem.name + ": this is damaged PEM: " + why);
  return blocks;
}

[[noreturn]] void refuse_block(const PemText& pem, const PemBlock& block) {
  throw std::runtime_error(pem.name + ": the " + block.kind + " in it cannot be read: " + openssl_error());
}

[[noreturn]] void refuse_file(const std::string& path, const std::string& why) {
  throw std::runtime_error(path + ": " + why);
}

std::string content_of(int fd, const std::string& path) {
  std::string text;
  std::array<char, 16 * 1024> part;
  for (ssize_t count = 0; (count = ::read(fd, part.data(), part.size())) != 0;) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse_file(path, std::generic_category().message(errno));
    text.append(part.data(), static_cast<std::size_t>(count));
    if (text.size() > largest_pem) refuse_file(path, "larger than 1 MiB, so no such file");
  }
  return text;
}

}  // namespace

std::string fingerprint_of(const X509& certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  openssl().X509_digest(&certificate, openssl().EVP_sha256(), digest.data(), &size);
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += digits[digest.at(i) >> 4U];
    text += digits[digest.at(i) & 15U];
  }
  return text;
}

TlsCertificate describe(const X509& certificate) {
  const X509_NAME* const subject = openssl().X509_get_subject_name(&certificate);
  TlsCertificate described{.name = common_name_of(subject),
                           .subject = whole_name(subject),
                           .issuer = whole_name(openssl().X509_get_issuer_name(&certificate)),
                           .fingerprint = fingerprint_of(certificate),
                           .not_before = utc_of(openssl().X509_get0_notBefore(&certificate), latest_date),
                           .not_after = utc_of(openssl().X509_get0_notAfter(&certificate), earliest_date),
                           .dns_names = {},
                           .addresses = {},
                           .uris = {}};
  add_alternative_names(certificate, described);
  return described;
}

std::string der_of(const X509& certificate) {
  const int size = openssl().i2d_X509(&certificate, nullptr);
  std::string der(static_cast<std::size_t>(std::max(size, 0)), '\0');
  auto* out = reinterpret_cast<unsigned char*>(der.data());
  if (size > 0) openssl().i2d_X509(&certificate, &out);
  return der;
}

X509Handle x509_of(std::string_view der) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  return X509Handle(openssl().d2i_X509(nullptr, &bytes, static_cast<long>(der.size())));
}

std::vector<X509Handle> certificates_in(const PemText& pem) {
  std::vector<X509Handle> found;
  for (const PemBlock& block : blocks_in(pem)) {
    if (block.kind != PEM_STRING_X509 && block.kind != PEM_STRING_X509_OLD) continue;
    found.push_back(x509_of(block.der));
    if (!found.back()) refuse_block(pem, block);
  }
  return found;
}

std::vector<KeyHandle> keys_in(const PemText& pem) {
  std::vector<KeyHandle> found;
  for (const PemBlock& block : blocks_in(pem)) {
    if (!block.kind.ends_with("PRIVATE KEY")) continue;
    if (block.kind.starts_with("ENCRYPTED"))
      throw std::runtime_error(pem.name + ": the key is encrypted, and nobody can be asked for its password");
    const auto* bytes = reinterpret_cast<const unsigned char*>(block.der.data());
    found.emplace_back(openssl().d2i_AutoPrivateKey(nullptr, &bytes, static_cast<long>(block.der.size())));
    if (!found.back()) refuse_block(pem, block);
  }
  return found;
}

PemText read_pem_file(const std::string& path, bool secret) {
  const base::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) refuse_file(path, errno == ENOENT ? "there is no such file" : std::generic_category().message(errno));
  struct stat status {};
  base::check_call(fstat(fd.get(), &status), "fstat");
  if (!S_ISREG(status.st_mode)) refuse_file(path, "not a file");
  if (secret && (status.st_mode & 077U) != 0)
    refuse_file(path, "others than its owner can get at this key: 'chmod 600' it");
  if (secret && status.st_uid != geteuid() && status.st_uid != 0) refuse_file(path, "this key belongs to another user");
  return {path, content_of(fd.get(), path)};
}

}  // namespace duet::transport
