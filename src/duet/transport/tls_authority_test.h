#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "duet/transport/openssl.h"
#include "duet/transport/tls_certificate.h"

namespace duet::transport {

/// A certificate with its key, both as PEM.
struct TestIdentity {
  std::string certificate;
  std::string key;
};

/// What a certificate for a test is to be.
struct TestCertificate {
  std::string name = "somebody";
  std::string names = {};            ///< `DNS:localhost,IP:127.0.0.1,URI:urn:x`, as OpenSSL writes them
  std::string usage = "clientAuth";  ///< `serverAuth`; empty: any
  bool is_authority = false;
  std::chrono::hours from{-1};
  std::chrono::hours until{24};
  int rsa_bits = 0;  ///< else EC P-256
  bool names_issuer_key = false;
  std::string until_text = {};  ///< in the place of `until`, as the certificate has it
};

/// Makes certificates for tests.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name = "test authority")
      : key_(make_key(0)),
        certificate_(make({.name = name, .usage = "", .is_authority = true}, *key_, *key_, nullptr)) {}

  std::string pem() const { return pem_of(*certificate_); }
  TestIdentity issue(const TestCertificate& wanted) const {
    const KeyHandle key = make_key(wanted.rsa_bits);
    return {pem_of(*make(wanted, *key, *key_, certificate_.get())), pem_of(*key)};
  }
  /// An authority below this one.
  TestAuthority below(const std::string& name) const {
    KeyHandle key = make_key(0);
    X509Handle certificate = make({.name = name, .usage = "", .is_authority = true}, *key, *key_, certificate_.get());
    return {std::move(key), std::move(certificate)};
  }

  template <typename Thing>
  static std::string pem_of(const Thing& thing) {
    const std::unique_ptr<BIO, OpenSslDelete<&OpenSsl::BIO_free_all>> bio(openssl().BIO_new(openssl().BIO_s_mem()));
    if constexpr (std::is_same_v<Thing, X509>) {
      openssl().PEM_write_bio_X509(bio.get(), &thing);
    } else {
      openssl().PEM_write_bio_PrivateKey(bio.get(), &thing, nullptr, nullptr, 0, nullptr, nullptr);
    }
    char* bytes = nullptr;
    const long size = openssl().BIO_ctrl(bio.get(), BIO_CTRL_INFO, 0, &bytes);
    return {bytes, static_cast<std::size_t>(size)};
  }

 private:
  TestAuthority(KeyHandle key, X509Handle certificate) : key_(std::move(key)), certificate_(std::move(certificate)) {}

  static KeyHandle make_key(int rsa_bits) {
    const std::unique_ptr<EVP_PKEY_CTX, OpenSslDelete<&OpenSsl::EVP_PKEY_CTX_free>> context(
        openssl().EVP_PKEY_CTX_new_id(rsa_bits == 0 ? EVP_PKEY_EC : EVP_PKEY_RSA, nullptr));
    openssl().EVP_PKEY_keygen_init(context.get());
    if (rsa_bits == 0) {
      openssl().EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context.get(), NID_X9_62_prime256v1);
    } else {
      openssl().EVP_PKEY_CTX_set_rsa_keygen_bits(context.get(), rsa_bits);
    }
    EVP_PKEY* key = nullptr;
    if (openssl().EVP_PKEY_keygen(context.get(), &key) != 1) throw std::runtime_error(openssl_error());
    return KeyHandle(key);
  }

  static void extend(X509& certificate, X509* issuer, int kind, const std::string& value) {
    X509V3_CTX context{};
    openssl().X509V3_set_ctx(&context, issuer == nullptr ? &certificate : issuer, &certificate, nullptr, nullptr, 0);
    X509_EXTENSION* const extension = openssl().X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
    if (extension == nullptr) throw std::runtime_error(value + ": " + openssl_error());
    openssl().X509_add_ext(&certificate, extension, -1);
    openssl().X509_EXTENSION_free(extension);
  }

  static X509Handle make(const TestCertificate& wanted, EVP_PKEY& key, EVP_PKEY& issuer_key, X509* issuer) {
    static std::int64_t serial = 0;
    X509Handle made(openssl().X509_new());
    openssl().X509_set_version(made.get(), 2);
    openssl().ASN1_INTEGER_set_int64(openssl().X509_get_serialNumber(made.get()), ++serial);
    const auto seconds = [](std::chrono::hours hours) { return std::chrono::seconds(hours).count(); };
    openssl().X509_gmtime_adj(openssl().X509_getm_notBefore(made.get()), seconds(wanted.from));
    openssl().X509_gmtime_adj(openssl().X509_getm_notAfter(made.get()), seconds(wanted.until));
    if (!wanted.until_text.empty()) {
      auto* const until = reinterpret_cast<ASN1_STRING*>(openssl().X509_getm_notAfter(made.get()));
      until->type = V_ASN1_GENERALIZEDTIME;
      openssl().ASN1_STRING_set(until, wanted.until_text.data(), static_cast<int>(wanted.until_text.size()));
    }
    openssl().X509_set_pubkey(made.get(), &key);
    X509_NAME* const subject = openssl().X509_get_subject_name(made.get());
    const auto* const name = reinterpret_cast<const unsigned char*>(wanted.name.c_str());
    if (!wanted.name.empty()) openssl().X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, name, -1, -1, 0);
    openssl().X509_set_issuer_name(made.get(), issuer == nullptr ? subject : openssl().X509_get_subject_name(issuer));
    extend(*made, issuer, NID_basic_constraints, wanted.is_authority ? "critical,CA:TRUE" : "CA:FALSE");
    if (wanted.is_authority) extend(*made, issuer, NID_subject_key_identifier, "hash");
    if (wanted.names_issuer_key) extend(*made, issuer, NID_authority_key_identifier, "keyid:always");
    if (!wanted.usage.empty()) extend(*made, issuer, NID_ext_key_usage, wanted.usage);
    if (!wanted.names.empty()) extend(*made, issuer, NID_subject_alt_name, wanted.names);
    if (openssl().X509_sign(made.get(), &issuer_key, openssl().EVP_sha256()) == 0)
      throw std::runtime_error(openssl_error());
    return made;
  }

  KeyHandle key_;
  X509Handle certificate_;
};

}  // namespace duet::transport
