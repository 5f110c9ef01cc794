#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "duet/transport/openssl.h"

namespace duet::app {

/// OpenSSL's certificates and keys with an owner, and their PEM text. No files, no clock. What OpenSSL refuses to make
/// throws std::runtime_error; what cannot be read is a value.
template <typename Thing, auto Free>
using OpenSslOwner = std::unique_ptr<Thing, transport::OpenSslDelete<Free>>;
using X509Owner = OpenSslOwner<X509, &transport::OpenSsl::X509_free>;
using KeyOwner = OpenSslOwner<EVP_PKEY, &transport::OpenSsl::EVP_PKEY_free>;
using BioOwner = OpenSslOwner<BIO, &transport::OpenSsl::BIO_free>;

/// A certificate with its private key.
struct KeyPair {
  X509Owner certificate;
  KeyOwner key;
};

/// What a call of OpenSSL gave, or what it says of its failure.
template <typename Thing>
Thing* made_by_openssl(Thing* thing, const char* what) {
  if (thing == nullptr) throw std::runtime_error(std::string(what) + ": " + transport::openssl_error());
  return thing;
}
void check_openssl(int result, const char* what);

/// Reads `text`, which must outlive it.
BioOwner reading_bio(std::string_view text);
BioOwner writing_bio();
std::string text_of(BIO& bio);

/// All certificates of a PEM text, in their order, other parts left out. `damaged` if one of them makes no sense.
struct PemCertificates {
  std::vector<X509Owner> certificates;
  bool damaged = false;
};
PemCertificates certificates_in(std::string_view text);
/// The first private key of a PEM text; none if there is none, or it is encrypted: nobody is ever asked for a password.
KeyOwner key_in(std::string_view text);
bool is_encrypted_key(std::string_view text);

std::string pem_of(X509& certificate);
std::string pem_of(EVP_PKEY& key);
std::string pem_of(const std::vector<X509Owner>& certificates);

}  // namespace duet::app
