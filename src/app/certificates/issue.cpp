#include "app/certificates/issue.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <utility>

#include "app/certificates/certificate.h"
#include "app/certificates/server_name.h"
#include "duet/base/utc_text.h"

namespace duet::app {
namespace {

using transport::openssl;
using NumberOwner = OpenSslOwner<BIGNUM, &transport::OpenSsl::BN_free>;
using ExtensionOwner = OpenSslOwner<X509_EXTENSION, &transport::OpenSsl::X509_EXTENSION_free>;
using Pkcs12Owner = OpenSslOwner<PKCS12, &transport::OpenSsl::PKCS12_free>;

constexpr std::size_t longest_common_name = 64;  // RFC 5280, ub-common-name

/// An extension as x509v3_config(5) writes it.
struct Extension {
  int kind;
  std::string text;
};

KeyOwner new_key() {
  return KeyOwner(made_by_openssl(openssl().EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"), "making a key"));
}

void set_serial(X509& certificate) {
  const NumberOwner number(made_by_openssl(openssl().BN_new(), "memory"));
  check_openssl(openssl().BN_rand(number.get(), 128, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY), "a random number");
  ASN1_INTEGER* const serial = openssl().X509_get_serialNumber(&certificate);
  made_by_openssl(openssl().BN_to_ASN1_INTEGER(number.get(), serial), "a serial number");
}

void set_name(X509& certificate, const std::string& name) {
  X509_NAME* const subject = openssl().X509_get_subject_name(&certificate);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(name.data());
  check_openssl(openssl().X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, bytes,
                                                     static_cast<int>(name.size()), -1, 0),
                "a common name");
}

void set_life(X509& certificate, Life life) {
  const auto set = [](ASN1_TIME* to, base::UtcTime time) {
    made_by_openssl(openssl().ASN1_TIME_set(to, std::chrono::system_clock::to_time_t(time)), "a date");
  };
  set(openssl().X509_getm_notBefore(&certificate), life.begins);
  set(openssl().X509_getm_notAfter(&certificate), life.ends);
}

void add_extension(X509& certificate, X509& authority, const Extension& wanted) {
  X509V3_CTX context{};
  openssl().X509V3_set_ctx(&context, &authority, &certificate, nullptr, nullptr, 0);
  const ExtensionOwner extension(made_by_openssl(
      openssl().X509V3_EXT_conf_nid(nullptr, &context, wanted.kind, wanted.text.c_str()), "an extension"));
  check_openssl(openssl().X509_add_ext(&certificate, extension.get(), -1), "an extension");
}

// The keys of others may be of the kinds that have a digest of their own.
const EVP_MD* digest_for(const EVP_PKEY& key) {
  const int kind = openssl().EVP_PKEY_get_base_id(&key);
  return kind == EVP_PKEY_ED25519 || kind == EVP_PKEY_ED448 ? nullptr : openssl().EVP_sha256();
}

// Two of one machine must have two names, or nobody could say which of them a certificate is of: the day is for people,
// and the four digits are for two of one day.
std::string name_of_authority(const std::string& machine, Life life) {
  constexpr std::string_view day = "2026-11-16";
  std::array<char, 5> digits{};
  std::snprintf(digits.data(), digits.size(), "%04x", std::random_device()() & 0xffffU);
  const std::string end = ' ' + base::utc_text(life.begins).substr(0, day.size()) + ' ' + digits.data();
  const std::string begin = machine.empty() ? "duet-rpc CA" : "duet-rpc CA " + machine;
  return begin.substr(0, longest_common_name - end.size()) + end;
}

// By itself if there is no authority.
KeyPair make_certificate(const KeyPair* authority, const std::string& name, Life life,
                         const std::vector<Extension>& extensions) {
  KeyPair out{X509Owner(made_by_openssl(openssl().X509_new(), "memory")), new_key()};
  X509& certificate = *out.certificate;
  check_openssl(openssl().X509_set_version(&certificate, X509_VERSION_3), "a certificate");
  set_serial(certificate);
  set_name(certificate, name);
  set_life(certificate, life);
  check_openssl(openssl().X509_set_pubkey(&certificate, out.key.get()), "a public key");
  X509& issuer = authority == nullptr ? certificate : *authority->certificate;
  EVP_PKEY& key = authority == nullptr ? *out.key : *authority->key;
  check_openssl(openssl().X509_set_issuer_name(&certificate, openssl().X509_get_subject_name(&issuer)), "an issuer");
  for (const Extension& extension : extensions) add_extension(certificate, issuer, extension);
  check_openssl(openssl().X509_sign(&certificate, &key, digest_for(key)), "signing");
  return out;
}

KeyPair make_leaf(const KeyPair& authority, const std::string& name, Life life, const char* use,
                  const std::string& alternative_names) {
  const auto above = read_certificate(*authority.certificate);
  if (above) life.ends = std::min(life.ends, above->ends);
  std::vector<Extension> extensions{{NID_basic_constraints, "critical,CA:FALSE"},
                                    {NID_key_usage, "critical,digitalSignature"},
                                    {NID_ext_key_usage, use},
                                    {NID_subject_key_identifier, "hash"},
                                    {NID_subject_alt_name, alternative_names}};
  const bool has_identifier = openssl().X509_get0_subject_key_id(authority.certificate.get()) != nullptr;
  if (has_identifier) extensions.push_back({NID_authority_key_identifier, "keyid"});  // CAs of others may have none
  return make_certificate(&authority, name, life, extensions);
}

}  // namespace

Life life_from(base::UtcTime now, std::chrono::days days) { return {now - before_now, now + days}; }

KeyPair make_authority(const std::string& machine, Life life) {
  return make_certificate(nullptr, name_of_authority(machine, life), life,
                          {{NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
                           {NID_key_usage, "critical,keyCertSign,cRLSign"},
                           {NID_subject_key_identifier, "hash"}});
}

KeyPair make_server(const KeyPair& authority, const std::vector<std::string>& hosts, Life life) {
  std::string names;
  for (const std::string& host : hosts) {
    names += (names.empty() ? "" : ",") + std::string(is_address(host) ? "IP:" : "DNS:") + host;
  }
  const auto fits = [](const std::string& host) { return host.size() <= longest_common_name; };
  const auto name = std::ranges::find_if(hosts, fits);
  return make_leaf(authority, name == hosts.end() ? "duet-rpc" : *name, life, "serverAuth", names);
}

KeyPair make_client(const KeyPair& authority, const std::string& name, std::string_view role, Life life) {
  return make_leaf(authority, name, life, "clientAuth", "URI:" + std::string(role_uri) + std::string(role));
}

std::string pkcs12_of(const KeyPair& client, const std::vector<X509Owner>& authorities, const std::string& name,
                      const std::string& password) {
  constexpr int rounds = 100'000;  // what a guess of the password costs
  const std::unique_ptr<OPENSSL_STACK, void (*)(OPENSSL_STACK*)> chain(
      made_by_openssl(openssl().OPENSSL_sk_new_null(), "memory"),
      [](OPENSSL_STACK* s) { openssl().OPENSSL_sk_free(s); });
  for (const X509Owner& authority : authorities) openssl().OPENSSL_sk_push(chain.get(), authority.get());
  auto* const others = reinterpret_cast<STACK_OF(X509)*>(chain.get());
  const Pkcs12Owner made(
      made_by_openssl(openssl().PKCS12_create(password.c_str(), name.c_str(), client.key.get(),
                                              client.certificate.get(), others, 0, 0, rounds, rounds, 0),
                      "PKCS#12"));
  unsigned char* bytes = nullptr;
  const int size = openssl().i2d_PKCS12(made.get(), &bytes);
  check_openssl(size, "PKCS#12");
  std::string out(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  openssl().CRYPTO_free(bytes, "", 0);
  return out;
}

}  // namespace duet::app
